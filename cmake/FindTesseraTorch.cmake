# LibTorch without its own TorchConfig.cmake, which probes for a GPU and links everything.
# Defines the target tessera::torch: torch_cpu and c10 (host), plus torch_cuda and c10_cuda with TESSERA_WITH_CUDA.
set(_hints ${TESSERA_LIBTORCH} $ENV{TESSERA_LIBTORCH})
file(GLOB _cached "$ENV{HOME}/.cache/tessera/libtorch-*/lib/python3*/site-packages/torch")
find_path(TesseraTorch_ROOT_INCLUDE torch/csrc/api/include/torch/torch.h
  HINTS ${_hints} ${_cached} PATH_SUFFIXES include torch/include lib/python3.11/site-packages/torch/include)
if(TesseraTorch_ROOT_INCLUDE)
  get_filename_component(TesseraTorch_ROOT "${TesseraTorch_ROOT_INCLUDE}" DIRECTORY)
endif()
foreach(_lib torch_cpu c10)
  find_library(TesseraTorch_${_lib} ${_lib} HINTS "${TesseraTorch_ROOT}/lib" NO_DEFAULT_PATH)
endforeach()
if(TesseraTorch_ROOT_INCLUDE)
  file(STRINGS "${TesseraTorch_ROOT_INCLUDE}/torch/headeronly/version.h" _version REGEX "define TORCH_VERSION_M[AI][JN]OR ")
  if(NOT _version)
    file(STRINGS "${TesseraTorch_ROOT_INCLUDE}/torch/csrc/api/include/torch/version.h" _version REGEX "define TORCH_VERSION_M[AI][JN]OR ")
  endif()
  string(REGEX MATCHALL "[0-9]+" _numbers "${_version}")
  list(JOIN _numbers "." TesseraTorch_VERSION)
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(TesseraTorch
  REQUIRED_VARS TesseraTorch_torch_cpu TesseraTorch_c10 TesseraTorch_ROOT_INCLUDE
  VERSION_VAR TesseraTorch_VERSION
  REASON_FAILURE_MESSAGE "set TESSERA_LIBTORCH or CMAKE_PREFIX_PATH to LibTorch's folder, or let ./bootstrap install it")
if(TesseraTorch_FOUND AND NOT TARGET tessera::torch)
  add_library(tessera::torch INTERFACE IMPORTED)
  target_include_directories(tessera::torch SYSTEM INTERFACE
    "${TesseraTorch_ROOT_INCLUDE}" "${TesseraTorch_ROOT_INCLUDE}/torch/csrc/api/include")
  target_link_libraries(tessera::torch INTERFACE "${TesseraTorch_torch_cpu}" "${TesseraTorch_c10}" Threads::Threads)
  # The wheel's libtorch_cpu names CUDA's small runtime libraries; they are found at run time, not needed for linking.
  target_link_options(tessera::torch INTERFACE -Wl,--allow-shlib-undefined)
endif()
