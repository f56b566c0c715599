# SPDX-License-Identifier: Apache-2.0
# Compiler settings that every component shares.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

# One place for programs and one for libraries, so that the build tree runs as the install tree does.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
# Our own libraries are found relative to where they are, so that an install can be moved; LibTorch's by the path it was linked with.
set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR};$ORIGIN")
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

find_program(TESSERA_CCACHE ccache)
mark_as_advanced(TESSERA_CCACHE)
if(TESSERA_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Precompiled headers carry no time stamps that matter here; without this ccache would refuse every such file. It does not see
  # definitions that only change what stands behind a precompiled header, so another set of flags gets a namespace of its own.
  string(MD5 _flags "${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_BUILD_TYPE} ${CMAKE_CXX_FLAGS} ${TESSERA_SANITIZE} AT_PER_OPERATOR_HEADERS")
  set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND};-E;env;CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime;CCACHE_NAMESPACE=tessera-${_flags};${TESSERA_CCACHE}")
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${CMAKE_CXX_COMPILER_LAUNCHER}")
endif()

# Options for C++ only: nvcc takes none of them.
function(tessera_cxx_options target)
  foreach(_option IN LISTS ARGN)
    target_compile_options(${target} INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${_option}>")
  endforeach()
endfunction()

add_library(tessera_flags INTERFACE)
tessera_cxx_options(tessera_flags -Wall -Wextra -Wno-unused-parameter)
if(TESSERA_WARNINGS_AS_ERRORS)
  tessera_cxx_options(tessera_flags -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # The compiler's garbage collector walks the precompiled headers: without it a full build takes a tenth less, and a job 10 % more memory.
  tessera_cxx_options(tessera_flags -fpch-preprocess --param=ggc-min-expand=1000 --param=ggc-min-heapsize=4000000)
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    tessera_cxx_options(tessera_flags -Wno-restrict)  # GCC bug 105651: "..." + std::string warns
  endif()
endif()
if(TESSERA_SANITIZE)
  set(_sanitizers -fsanitize=${TESSERA_SANITIZE} -fno-omit-frame-pointer)
  if(TESSERA_FUZZ)  # null pointers fault by themselves, and AddressSanitizer finds the rest of what these checks do: they cost a sixth
    list(APPEND _sanitizers -fno-sanitize=null,vptr,object-size -gline-tables-only)
  else()
    list(APPEND _sanitizers -g)
  endif()
  foreach(_option IN LISTS _sanitizers)
    tessera_cxx_options(tessera_flags "$<$<NOT:$<BOOL:$<TARGET_PROPERTY:TESSERA_WITHOUT_SANITIZERS>>>:${_option}>")
  endforeach()
  target_link_options(tessera_flags INTERFACE -fsanitize=${TESSERA_SANITIZE})
endif()
