# SPDX-License-Identifier: Apache-2.0
# tessera_component(NAME [SOURCES files] [TENSOR_SOURCES files] [USES components] [LINK targets] [PRIVATE_LINK targets] [UNITY] [COLD])
#   makes libtessera_NAME and tessera::NAME from all these files, with include/tessera/NAME/*.hpp as its public headers; it may
#   include what it USES and nothing else (cmake/CheckLayers.cmake). TENSOR_SOURCES include tessera/kernels/tensor.hpp, are
#   compiled with it as their precompiled header, and make the component one that links with LibTorch. SOURCES may not
#   include it. UNITY compiles twelve files at a time (TESSERA_UNITY_BUILD): names in unnamed namespaces must then differ.
#   COLD: no run spends time in it. Release builds compile it with -O1, which takes up to 40 % less time than -O3.
# tessera_cuda_sources(COMPONENT SOURCES...)
#   adds CUDA files and C++ files that call the CUDA runtime to a component; only these see CUDA's headers, so that every other
#   file is compiled as in the host configuration and comes out of the compiler cache.
# tessera_test(NAME SOURCES... LINK targets [RANKS n...] [EXCEPT n:FILTER...] [AVX2 [n...]] [KOKKOS] [SIM [n...]] [TIMEOUT s] [LABELS l...]
#              [TORCH])
#   one GoogleTest program; with RANKS it runs under mpirun once for each rank count, one ctest test each. EXCEPT names the
#   cases that do not run on so many ranks, as a filter of GoogleTest. With AVX2 (of these rank counts) it runs a second
#   time as tessera_test_avx2() says, with KOKKOS as tessera_test_kokkos() says, with SIM as tessera_test_sim() says.
#   The target tests_without_torch builds all that have no TORCH.
#
# The order of tests: a rank counts as a processor, as two tests of 8 ranks at a time take a quarter longer on 2 processors.
# COST, by which ctest sorts, is a hundred times the processors: after tests of one processor no other would find enough free.
# Tests of one processor that take long have COST 100, too, so that short ones fill up the end.
#
# tessera_test_avx2(NAME COMMAND...)
#   where the processor has AVX-512 adds the test NAME.avx2: the command of test NAME, with its properties, as a processor
#   that has AVX2 and no more computes it. For tests that compare figures.
# tessera_test_kokkos(NAME COMMAND...)
#   adds the test NAME.kokkos: the command of test NAME, with its properties, with the host's kernels in Kokkos.
# tessera_test_sim(NAME LIBRARY COMMAND...)
#   with TESSERA_SIM_GPU adds the test NAME.sim: the command of test NAME, with its properties, on the simulated GPU. LIBRARY is
#   what the program preloads: tessera_sim_gpu, or tessera_sim_comm for programs without LibTorch. Programs that mpirun.sh starts
#   get it from there, so that mpirun itself does not load it.
# tessera_sim_ranks_test(NAME RANKS n SECONDS s [LABELS l...] [ENVIRONMENT e...] PROGRAM target [ARGUMENTS...])
#   with TESSERA_SIM_GPU adds a test that only the simulated GPU has: a program with LibTorch on n ranks and devices.
# tessera_sim_host_kernels(NAME [FILTER f])
#   makes the test NAME.sim run the host's kernels on the device: for tests of what is around the kernels, many times faster.
#   FILTER names the cases that run there.
# tessera_test_cuda(NAME RANKS COMMAND...)
#   with TESSERA_WITH_CUDA adds the test NAME.cuda: the same on real GPUs, one for each rank, where the machine has as many.
#   Tests with SIM have it of all their numbers of ranks.

add_library(tessera_headers INTERFACE)
target_include_directories(tessera_headers INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(tessera_headers INTERFACE cxx_std_20)
set_property(GLOBAL PROPERTY TESSERA_COMPONENTS "")
set(TESSERA_COLD_OPTIONS $<$<CONFIG:Release>:-O1>)

# One precompiled header serves every file that uses tensors.
add_library(tessera_tensor_pch OBJECT ${PROJECT_SOURCE_DIR}/cmake/tensor_pch.cpp)
target_link_libraries(tessera_tensor_pch PRIVATE tessera_headers tessera::torch tessera_flags)
target_precompile_headers(tessera_tensor_pch PRIVATE <tessera/kernels/tensor.hpp>)

# Files of TARGET beside its TENSOR_SOURCES: compiled without the precompiled header, and an error if they include it.
function(tessera_without_tensors)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_PRECOMPILE_HEADERS ON COMPILE_DEFINITIONS TESSERA_WITHOUT_TENSORS)
endfunction()

function(tessera_component component)
  cmake_parse_arguments(ARG "UNITY;COLD" "" "SOURCES;TENSOR_SOURCES;USES;LINK;PRIVATE_LINK" ${ARGN})
  add_library(tessera_${component} SHARED ${ARG_SOURCES} ${ARG_TENSOR_SOURCES})
  add_library(tessera::${component} ALIAS tessera_${component})
  list(TRANSFORM ARG_USES PREPEND tessera_ OUTPUT_VARIABLE used)
  target_link_libraries(tessera_${component} PUBLIC tessera_headers ${used} ${ARG_LINK} PRIVATE tessera_flags ${ARG_PRIVATE_LINK})
  set_target_properties(tessera_${component} PROPERTIES
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} DEFINE_SYMBOL "" EXPORT_NAME ${component})
  # A component that calls what it does not link with fails here, not in the program. (A sanitizer's runtime is in the program.)
  if(NOT TESSERA_SANITIZE)
    target_link_options(tessera_${component} PRIVATE -Wl,-z,defs)
  endif()
  if(ARG_UNITY AND TESSERA_UNITY_BUILD)
    set_target_properties(tessera_${component} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
  endif()
  if(ARG_COLD)
    target_compile_options(tessera_${component} PRIVATE ${TESSERA_COLD_OPTIONS})
  endif()
  set(torch OFF)
  if(ARG_TENSOR_SOURCES)
    set(torch ON)
    target_link_libraries(tessera_${component} PUBLIC tessera::torch)
    target_precompile_headers(tessera_${component} REUSE_FROM tessera_tensor_pch)
    tessera_without_tensors(${ARG_SOURCES})
  endif()
  file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/tessera/${component}/*.hpp)
  target_sources(tessera_${component} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${headers})
  # `cmake --build DIR --target all_verify_interface_header_sets` compiles each of these headers alone. With LibTorch that takes
  # longer: headers_test does it with the precompiled tensor.hpp.
  if(NOT torch)
    set_target_properties(tessera_${component} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
  endif()
  set_target_properties(tessera_${component} PROPERTIES TESSERA_USES "${ARG_USES}" TESSERA_TORCH ${torch})
  set_property(GLOBAL APPEND PROPERTY TESSERA_COMPONENTS ${component})
endfunction()

function(tessera_cuda_sources component)
  target_sources(tessera_${component} PRIVATE ${ARGN})
  set_source_files_properties(${ARGN} PROPERTIES INCLUDE_DIRECTORIES "${CUDAToolkit_INCLUDE_DIRS}")
  target_link_libraries(tessera_${component} PRIVATE $<LINK_ONLY:CUDA::cudart>)
endfunction()

add_custom_target(tests_without_torch)

# Tests are compiled like cold components. Their precompiled headers need the same flags.
if(TESSERA_BUILD_TESTS)
  add_library(tessera_test_pch OBJECT EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/cmake/tensor_pch.cpp)
  target_link_libraries(tessera_test_pch PRIVATE tessera_flags GTest::gtest GTest::gmock)
  target_compile_options(tessera_test_pch PRIVATE ${TESSERA_COLD_OPTIONS})
  target_precompile_headers(tessera_test_pch PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
  add_library(tessera_tensor_test_pch OBJECT EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/cmake/tensor_pch.cpp)
  target_link_libraries(tessera_tensor_test_pch PRIVATE tessera_headers tessera::torch tessera_flags GTest::gtest GTest::gmock)
  target_compile_options(tessera_tensor_test_pch PRIVATE ${TESSERA_COLD_OPTIONS})
  target_precompile_headers(tessera_tensor_test_pch PRIVATE <tessera/kernels/tensor.hpp> <torch/csrc/autograd/autograd.h>
    <ATen/TensorIndexing.h> <gmock/gmock.h> <gtest/gtest.h>)
endif()

file(STRINGS /proc/cpuinfo _avx512 REGEX "^flags.* avx512f" LIMIT_COUNT 1)

# The test NAME.SUFFIX: another command with the properties of NAME, and the environment ENVIRONMENT on top.
function(tessera_test_twin name suffix environment)
  add_test(NAME ${name}.${suffix} COMMAND ${ARGN})
  foreach(property TIMEOUT LABELS PROCESSORS COST ENVIRONMENT)
    get_property(value TEST ${name} PROPERTY ${property})
    if(value)
      set_property(TEST ${name}.${suffix} PROPERTY ${property} ${value})
    endif()
  endforeach()
  set_property(TEST ${name}.${suffix} APPEND PROPERTY LABELS ${suffix})
  set_property(TEST ${name}.${suffix} APPEND PROPERTY ENVIRONMENT ${environment})
endfunction()

function(tessera_test_avx2 name)
  if(_avx512)
    tessera_test_twin(${name} avx2 "TESSERA_CPU=avx2;ONEDNN_MAX_CPU_ISA=AVX2;ATEN_CPU_CAPABILITY=avx2;MKL_ENABLE_INSTRUCTIONS=AVX2"
      ${ARGN})
  endif()
endfunction()

function(tessera_test_kokkos name)
  tessera_test_twin(${name} kokkos "TESSERA_KERNELS=kokkos" ${ARGN})
endfunction()

# A sanitizer's runtime must be the first library of a program, so it gets none preloaded.
function(tessera_test_sim name library)
  if(TESSERA_SIM_GPU AND NOT TESSERA_SANITIZE)
    set(preload "LD_PRELOAD=$<TARGET_FILE:${library}>")
    if("${ARGN}" MATCHES "/mpirun\\.sh;")
      string(REPLACE "LD_PRELOAD=" "TESSERA_SIM_PRELOAD=" preload "${preload}")
    endif()
    tessera_test_twin(${name} sim "TESSERA_TEST_DEVICE=sim;${preload}" ${ARGN})
  endif()
endfunction()

function(tessera_sim_ranks_test name)
  cmake_parse_arguments(ARG "" "RANKS;SECONDS;PROGRAM" "LABELS;ENVIRONMENT;ARGUMENTS" ${ARGN})
  if(NOT TESSERA_SIM_GPU OR TESSERA_SANITIZE)
    return()
  endif()
  add_test(NAME ${name}
    COMMAND ${PROJECT_SOURCE_DIR}/tests/mpirun.sh ${ARG_SECONDS} ${ARG_RANKS} $<TARGET_FILE:${ARG_PROGRAM}> ${ARG_ARGUMENTS})
  math(EXPR hard "${ARG_SECONDS} + 30")
  set_tests_properties(${name} PROPERTIES TIMEOUT ${hard} LABELS "${ARG_LABELS}" PROCESSORS ${ARG_RANKS} COST ${ARG_RANKS}00
    ENVIRONMENT "TESSERA_TEST_DEVICE=sim;TESSERA_SIM_PRELOAD=$<TARGET_FILE:tessera_sim_gpu>;${ARG_ENVIRONMENT}")
endfunction()

function(tessera_sim_host_kernels name)
  cmake_parse_arguments(ARG "" "FILTER" "" ${ARGN})
  if(TEST ${name}.sim)
    set_property(TEST ${name}.sim APPEND PROPERTY ENVIRONMENT TESSERA_SIM_KERNELS=host)
    if(ARG_FILTER)
      set_property(TEST ${name}.sim APPEND PROPERTY ENVIRONMENT "GTEST_FILTER=${ARG_FILTER}")
    endif()
  endif()
endfunction()

# GPUs of this machine: what needs more of them is not registered.
if(TESSERA_WITH_CUDA AND NOT DEFINED TESSERA_TEST_GPUS)
  set(_gpus "")
  find_program(TESSERA_NVIDIA_SMI nvidia-smi)
  if(TESSERA_NVIDIA_SMI)
    execute_process(COMMAND ${TESSERA_NVIDIA_SMI} -L OUTPUT_VARIABLE _gpus ERROR_QUIET)
  endif()
  string(REGEX MATCHALL "GPU [0-9]+:" _gpus "${_gpus}")
  list(LENGTH _gpus _count)
  set(TESSERA_TEST_GPUS ${_count} CACHE STRING "GPUs that tests may use; found by nvidia-smi at the first configuration")
endif()

function(tessera_test_cuda name ranks)
  if(TESSERA_WITH_CUDA AND NOT TESSERA_SANITIZE AND ranks LESS_EQUAL TESSERA_TEST_GPUS)
    tessera_test_twin(${name} cuda "TESSERA_TEST_DEVICE=cuda" ${ARGN})
    set_property(TEST ${name}.cuda PROPERTY RESOURCE_LOCK gpu)
  endif()
endfunction()

function(tessera_test name)
  cmake_parse_arguments(ARG "TORCH;KOKKOS" "TIMEOUT" "SOURCES;LINK;RANKS;EXCEPT;AVX2;SIM;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 400)
  endif()
  if(TESSERA_SANITIZE)
    math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * 5")  # how much slower thread sanitizer makes a program
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} tessera_flags GTest::gtest GTest::gmock)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${name} PRIVATE TESSERA_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/golden")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  if(ARG_TORCH)
    target_precompile_headers(${name} REUSE_FROM tessera_tensor_test_pch)
  else()
    target_precompile_headers(${name} REUSE_FROM tessera_test_pch)
  endif()
  target_compile_options(${name} PRIVATE ${TESSERA_COLD_OPTIONS})
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${TESSERA_UNITY_BUILD} UNITY_BUILD_BATCH_SIZE 8)
  target_compile_options(${name} PRIVATE -fPIC)  # GCC refuses the precompiled header of position-independent code under -fPIE
  set(sim_library tessera_sim_gpu)
  if(NOT ARG_TORCH)
    add_dependencies(tests_without_torch ${name})
    list(APPEND ARG_LABELS without_torch)
    set(sim_library tessera_sim_comm)
  endif()
  if("SIM" IN_LIST ARGN AND TESSERA_SIM_GPU)
    add_dependencies(${name} ${sim_library})
  endif()
  if(NOT ARG_RANKS)
    target_link_libraries(${name} PRIVATE GTest::gtest_main)
    add_test(NAME ${name} COMMAND ${name})
    # Threads enough to see them, and none that spin: beside other tests that costs minutes.
    set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "unit;${ARG_LABELS}"
      ENVIRONMENT "OMP_NUM_THREADS=2;OMP_WAIT_POLICY=passive")
    if("AVX2" IN_LIST ARGN)
      tessera_test_avx2(${name} ${name})
    endif()
    if(ARG_KOKKOS)
      tessera_test_kokkos(${name} ${name})
    endif()
    if("SIM" IN_LIST ARGN)
      tessera_test_sim(${name} ${sim_library} ${name})
      tessera_test_cuda(${name} 1 ${name})
    endif()
    return()
  endif()
  foreach(n IN LISTS ARG_RANKS)
    # `timeout` ends mpirun and its ranks together; ctest's own limit is the second net.
    math(EXPR hard "${ARG_TIMEOUT} + 30")
    set(filter ${ARG_EXCEPT})
    list(FILTER filter INCLUDE REGEX "^${n}:")
    list(TRANSFORM filter REPLACE "^${n}:" "--gtest_filter=-")
    set(command ${PROJECT_SOURCE_DIR}/tests/mpirun.sh ${ARG_TIMEOUT} ${n} $<TARGET_FILE:${name}> ${filter})
    add_test(NAME ${name}_np${n} COMMAND ${command})
    set_tests_properties(${name}_np${n} PROPERTIES TIMEOUT ${hard} LABELS "mpi;${ARG_LABELS}" PROCESSORS ${n} COST ${n}00)
    if(n IN_LIST ARG_AVX2)
      tessera_test_avx2(${name}_np${n} ${command})
    endif()
    if(n IN_LIST ARG_SIM)
      tessera_test_sim(${name}_np${n} ${sim_library} ${command})
    endif()
    if("SIM" IN_LIST ARGN)
      tessera_test_cuda(${name}_np${n} ${n} ${command})
    endif()
  endforeach()
endfunction()
