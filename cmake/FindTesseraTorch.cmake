# SPDX-License-Identifier: Apache-2.0
# LibTorch without its own TorchConfig.cmake, which probes for a GPU and links everything. Defines the target tessera::torch:
# torch_cpu and c10, and with the component CUDA also torch_cuda and c10_cuda. Looked for in TESSERA_LIBTORCH (the folder that
# holds include/ and lib/, or the virtual environment around it), CMAKE_PREFIX_PATH and where ./bootstrap puts it.
set(_cache "$ENV{TESSERA_CACHE}")
if(NOT _cache)
  set(_cache "$ENV{XDG_CACHE_HOME}")
  if(NOT _cache)
    set(_cache "$ENV{HOME}/.cache")
  endif()
  string(APPEND _cache "/tessera")
endif()
set(_named ${TESSERA_LIBTORCH} $ENV{TESSERA_LIBTORCH})
set(_around "")
foreach(_prefix IN LISTS _named CMAKE_PREFIX_PATH)
  file(GLOB _found "${_prefix}/lib/python3*/site-packages/torch")
  list(APPEND _around ${_found})
endforeach()
file(GLOB _cached "${_cache}/libtorch-2.*/lib/python3*/site-packages/torch")
list(SORT _cached ORDER DESCENDING)
find_path(TesseraTorch_ROOT_INCLUDE torch/csrc/api/include/torch/torch.h
  HINTS ${_named} ${_around} ${CMAKE_PREFIX_PATH} ${_cached} PATH_SUFFIXES include torch/include)
if(TesseraTorch_ROOT_INCLUDE)
  get_filename_component(TesseraTorch_ROOT "${TesseraTorch_ROOT_INCLUDE}" DIRECTORY)
endif()
set(_libraries torch_cpu c10)
if("CUDA" IN_LIST TesseraTorch_FIND_COMPONENTS)
  list(APPEND _libraries torch_cuda c10_cuda)
endif()
set(_required "")
foreach(_lib IN LISTS _libraries)
  find_library(TesseraTorch_${_lib} ${_lib} HINTS "${TesseraTorch_ROOT}/lib" NO_DEFAULT_PATH)
  list(APPEND _required TesseraTorch_${_lib})
endforeach()
set(TesseraTorch_VERSION "")
foreach(_header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
  if(NOT TesseraTorch_VERSION AND EXISTS "${TesseraTorch_ROOT_INCLUDE}/${_header}")
    file(STRINGS "${TesseraTorch_ROOT_INCLUDE}/${_header}" _lines REGEX "^#define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
    string(REGEX MATCHALL " [0-9]+" _numbers "${_lines}")
    list(JOIN _numbers "." TesseraTorch_VERSION)
    string(REPLACE " " "" TesseraTorch_VERSION "${TesseraTorch_VERSION}")
  endif()
endforeach()
if("CUDA" IN_LIST TesseraTorch_FIND_COMPONENTS AND TesseraTorch_torch_cuda AND TesseraTorch_c10_cuda)
  set(TesseraTorch_CUDA_FOUND TRUE)
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(TesseraTorch
  REQUIRED_VARS ${_required} TesseraTorch_ROOT_INCLUDE VERSION_VAR TesseraTorch_VERSION HANDLE_COMPONENTS
  REASON_FAILURE_MESSAGE "set TESSERA_LIBTORCH or CMAKE_PREFIX_PATH to LibTorch's folder, or let ./bootstrap install it")
if(TesseraTorch_FOUND AND NOT TARGET tessera::torch)
  add_library(tessera::torch INTERFACE IMPORTED)
  target_include_directories(tessera::torch SYSTEM INTERFACE
    "${TesseraTorch_ROOT_INCLUDE}" "${TesseraTorch_ROOT_INCLUDE}/torch/csrc/api/include")
  target_link_libraries(tessera::torch INTERFACE "${TesseraTorch_torch_cpu}" "${TesseraTorch_c10}" Threads::Threads)
  # One header for each operation: <ATen/Functions.h>, with all of them, costs ten times as much to compile.
  target_compile_definitions(tessera::torch INTERFACE AT_PER_OPERATOR_HEADERS)
  # LibTorch's include directory holds a newer fmt without its library. A folder with nothing but a link to the headers of
  # the fmt that Tessera links with comes first, so that each file calls that library instead of compiling another copy.
  get_target_property(_fmt_include fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
  find_path(TesseraTorch_FMT_INCLUDE fmt/format.h HINTS ${_fmt_include} NO_DEFAULT_PATH)
  if(TesseraTorch_FMT_INCLUDE)
    file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/tessera-fmt")
    file(CREATE_LINK "${TesseraTorch_FMT_INCLUDE}/fmt" "${CMAKE_BINARY_DIR}/tessera-fmt/fmt" SYMBOLIC)
    target_compile_options(tessera::torch BEFORE INTERFACE "$<$<COMPILE_LANGUAGE:CXX,CUDA>:-I${CMAKE_BINARY_DIR}/tessera-fmt>")
  endif()
  # The wheel's libraries name NVIDIA's runtime libraries; those are found at run time, not needed for linking.
  target_link_options(tessera::torch INTERFACE -Wl,--allow-shlib-undefined)
  if(TesseraTorch_CUDA_FOUND)
    # Nothing in our code refers to torch_cuda: its kernels register themselves when it is loaded, so the linker must keep it.
    target_link_libraries(tessera::torch INTERFACE
      "-Wl,--push-state,--no-as-needed,${TesseraTorch_torch_cuda},${TesseraTorch_c10_cuda},--pop-state")
  endif()
endif()
