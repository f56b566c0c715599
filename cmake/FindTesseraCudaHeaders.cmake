# SPDX-License-Identifier: Apache-2.0
# The headers of the CUDA runtime without a toolkit, for the simulated GPU (tests/sim): the imported target tessera::cuda_headers.
# Looked for beside LibTorch (the wheels nvidia-cuda-runtime and nvidia-cuda-crt, whose version is LibTorch's), then in a toolkit.
# Call after FindTesseraTorch.
find_path(TesseraCudaHeaders_INCLUDE_DIR cuda_runtime_api.h
  HINTS "${TesseraTorch_ROOT}/../nvidia/cu13" ENV CUDAToolkit_ROOT ENV CUDA_HOME ENV CUDA_PATH
  PATHS /usr/local/cuda-13.0 /usr/local/cuda PATH_SUFFIXES include)
find_path(TesseraCudaHeaders_CRT_INCLUDE_DIR crt/host_defines.h
  HINTS "${TesseraCudaHeaders_INCLUDE_DIR}" "${TesseraTorch_ROOT}/../nvidia/cu13/include")
if(TesseraCudaHeaders_INCLUDE_DIR)
  file(STRINGS "${TesseraCudaHeaders_INCLUDE_DIR}/cuda_runtime_api.h" _version REGEX "^#define CUDART_VERSION +[0-9]+" LIMIT_COUNT 1)
  string(REGEX REPLACE "[^0-9]" "" _version "${_version}")
  math(EXPR _major "${_version} / 1000")
  math(EXPR _minor "${_version} % 1000 / 10")
  set(TesseraCudaHeaders_VERSION ${_major}.${_minor})
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(TesseraCudaHeaders
  REQUIRED_VARS TesseraCudaHeaders_INCLUDE_DIR TesseraCudaHeaders_CRT_INCLUDE_DIR VERSION_VAR TesseraCudaHeaders_VERSION
  REASON_FAILURE_MESSAGE "pip install nvidia-cuda-runtime and nvidia-cuda-crt into LibTorch's environment, or turn TESSERA_SIM_GPU off")
if(TesseraCudaHeaders_FOUND AND NOT TARGET tessera::cuda_headers)
  add_library(tessera::cuda_headers INTERFACE IMPORTED GLOBAL)
  target_include_directories(tessera::cuda_headers SYSTEM INTERFACE
    "${TesseraCudaHeaders_INCLUDE_DIR}" "${TesseraCudaHeaders_CRT_INCLUDE_DIR}")
endif()
mark_as_advanced(TesseraCudaHeaders_INCLUDE_DIR TesseraCudaHeaders_CRT_INCLUDE_DIR)
