# SPDX-License-Identifier: Apache-2.0
# NCCL >= 2.27, as the imported target NCCL::nccl. Looked for in NCCL_ROOT, beside LibTorch (the wheel nvidia-nccl-cu13, the one
# that LibTorch itself loads), in the CUDA toolkit and in CMAKE_PREFIX_PATH. Call after FindTesseraTorch and FindCUDAToolkit.
set(_hints ${NCCL_ROOT} $ENV{NCCL_ROOT} $ENV{NCCL_HOME} "${TesseraTorch_ROOT}/../nvidia/nccl" ${CUDAToolkit_LIBRARY_ROOT} ${CUDAToolkit_TARGET_DIR})
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${_hints} ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES include)
find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${_hints} ${CUDAToolkit_LIBRARY_DIR} PATH_SUFFIXES lib lib64)
if(NCCL_INCLUDE_DIR)
  file(STRINGS "${NCCL_INCLUDE_DIR}/nccl.h" _version REGEX "^#define NCCL_(MAJOR|MINOR|PATCH) ")
  string(REGEX MATCHALL " [0-9]+" _numbers "${_version}")
  list(JOIN _numbers "." NCCL_VERSION)
  string(REPLACE " " "" NCCL_VERSION "${NCCL_VERSION}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NCCL
  REQUIRED_VARS NCCL_LIBRARY NCCL_INCLUDE_DIR VERSION_VAR NCCL_VERSION
  REASON_FAILURE_MESSAGE "set NCCL_ROOT to the folder that holds include/nccl.h and lib/libnccl.so, or let `./bootstrap build --cuda` without --compile-only install it")
if(NCCL_FOUND AND NOT TARGET NCCL::nccl)
  add_library(NCCL::nccl UNKNOWN IMPORTED)
  set_target_properties(NCCL::nccl PROPERTIES IMPORTED_LOCATION "${NCCL_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${NCCL_INCLUDE_DIR}")
endif()
mark_as_advanced(NCCL_INCLUDE_DIR NCCL_LIBRARY)
