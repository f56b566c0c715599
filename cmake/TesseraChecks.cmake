# SPDX-License-Identifier: Apache-2.0
# The house rules that CMake can check, at each build in which a file has changed: who may include what (CheckLayers.cmake), and that
# no misspelt option is read anywhere (CheckOptions.cmake). Included after the last component.
get_property(_components GLOBAL PROPERTY TESSERA_COMPONENTS)
set(_facts "set(COMPONENTS \"${_components}\")\n")
foreach(_component IN LISTS _components)
  get_target_property(_dir tessera_${_component} SOURCE_DIR)
  get_target_property(_uses tessera_${_component} TESSERA_USES)
  get_target_property(_torch tessera_${_component} TESSERA_TORCH)
  string(APPEND _facts "set(DIR_${_component} \"${_dir}\")\nset(USES_${_component} \"${_uses}\")\nset(TORCH_${_component} ${_torch})\n")
endforeach()
# The program is no library, but lives by the same rules: it may use every component, and no foreign header.
string(APPEND _facts "list(APPEND COMPONENTS app)\nset(DIR_app \"${PROJECT_SOURCE_DIR}/src/app\")\nset(USES_app \"${_components}\")\nset(TORCH_app ON)\n")
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/layers.cmake CONTENT "${_facts}")

set(_trees "")
foreach(_tree src include mesh checkpoint)
  foreach(_kind cpp hpp cu cuh)
    list(APPEND _trees ${PROJECT_SOURCE_DIR}/${_tree}/*.${_kind})
  endforeach()
endforeach()
file(GLOB_RECURSE _sources CONFIGURE_DEPENDS ${_trees})
file(GLOB_RECURSE _scripts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/CMakeLists.txt ${PROJECT_SOURCE_DIR}/tests/CMakeLists.txt
  ${PROJECT_SOURCE_DIR}/cmake/*.cmake)
add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/layers.stamp
  COMMAND ${CMAKE_COMMAND} -DFACTS=${PROJECT_BINARY_DIR}/layers.cmake -DINCLUDE_DIR=${PROJECT_SOURCE_DIR}/include
    -P ${PROJECT_SOURCE_DIR}/cmake/CheckLayers.cmake
  COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${PROJECT_SOURCE_DIR} -P ${PROJECT_SOURCE_DIR}/cmake/CheckOptions.cmake
  COMMAND ${CMAKE_COMMAND} -E touch ${PROJECT_BINARY_DIR}/layers.stamp
  DEPENDS ${_sources} ${_scripts} ${PROJECT_BINARY_DIR}/layers.cmake ${PROJECT_SOURCE_DIR}/CMakeLists.txt
  COMMENT "Checking who includes what" VERBATIM)
add_custom_target(tessera_checks ALL DEPENDS ${PROJECT_BINARY_DIR}/layers.stamp)
