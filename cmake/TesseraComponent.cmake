# tessera_component(ROOM DIR SOURCES... [USES rooms] [LINK targets] [PRIVATE_LINK targets] [TORCH])
#   makes libtessera_ROOM and tessera::ROOM from src/ROOM/*.cpp; it may include what it links with and nothing else.
# tessera_test(NAME SOURCES... LINK targets [RANKS n...] [TIMEOUT s] [LABELS l...])
#   one GoogleTest program; with RANKS it runs under mpirun once for each rank count, one ctest test each.

add_library(tessera_headers INTERFACE)
target_include_directories(tessera_headers INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
set_property(GLOBAL PROPERTY TESSERA_ROOMS "")

# LibTorch's headers cost 15 s a file: one precompiled header serves every room that uses them.
add_library(tessera_torch_pch OBJECT ${PROJECT_SOURCE_DIR}/cmake/torch_pch.cpp)
target_link_libraries(tessera_torch_pch PRIVATE tessera::torch tessera_flags)
target_precompile_headers(tessera_torch_pch PRIVATE <torch/torch.h>)

function(tessera_component room)
  cmake_parse_arguments(ARG "TORCH" "" "SOURCES;USES;LINK;PRIVATE_LINK" ${ARGN})
  add_library(tessera_${room} SHARED ${ARG_SOURCES})
  add_library(tessera::${room} ALIAS tessera_${room})
  list(TRANSFORM ARG_USES PREPEND tessera_ OUTPUT_VARIABLE used)
  target_link_libraries(tessera_${room} PUBLIC tessera_headers ${used} ${ARG_LINK} PRIVATE tessera_flags ${ARG_PRIVATE_LINK})
  set_target_properties(tessera_${room} PROPERTIES
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} DEFINE_SYMBOL "" EXPORT_NAME ${room})
  if(ARG_TORCH)
    target_link_libraries(tessera_${room} PUBLIC tessera::torch)
    target_precompile_headers(tessera_${room} REUSE_FROM tessera_torch_pch)
  endif()
  set_property(TARGET tessera_${room} PROPERTY TESSERA_USES "${ARG_USES}")
  set_property(GLOBAL APPEND PROPERTY TESSERA_ROOMS ${room})
endfunction()

function(tessera_test name)
  cmake_parse_arguments(ARG "TORCH" "TIMEOUT" "SOURCES;LINK;RANKS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} tessera_flags GTest::gtest GTest::gmock)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${name} PRIVATE TESSERA_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/golden")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  if(ARG_TORCH)
    target_precompile_headers(${name} REUSE_FROM tessera_torch_pch)
  endif()
  if(NOT ARG_RANKS)
    target_link_libraries(${name} PRIVATE GTest::gtest_main)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "unit;${ARG_LABELS}")
    return()
  endif()
  foreach(n IN LISTS ARG_RANKS)
    # `timeout` ends mpirun and its ranks together; ctest's own limit is the second net.
    math(EXPR hard "${ARG_TIMEOUT} + 30")
    add_test(NAME ${name}_np${n}
      COMMAND ${PROJECT_SOURCE_DIR}/tests/mpirun.sh ${ARG_TIMEOUT} ${n} $<TARGET_FILE:${name}>)
    set_tests_properties(${name}_np${n} PROPERTIES TIMEOUT ${hard} LABELS "mpi;${ARG_LABELS}" PROCESSORS 2)
  endforeach()
endfunction()
