# SPDX-License-Identifier: Apache-2.0
# At installation: links between documents as they are in the folder of the documents. README.md is beside data.md there, not
# three folders above it. What is not installed (sources) is named without a link. Needs FOLDER.
file(GLOB_RECURSE _documents "${FOLDER}/*.md")
foreach(_document IN LISTS _documents)
  file(READ "${_document}" _text)
  string(REPLACE "](share/doc/tessera/" "](" _linked "${_text}")
  string(REGEX REPLACE "\\]\\(\\.\\./\\.\\./\\.\\./([A-Z]+\\.md)" "](\\1" _linked "${_linked}")
  string(REGEX REPLACE "\\[([^]\n]*)\\]\\((include|src|tests|cmake)/[^)]*\\)" "\\1" _linked "${_linked}")
  if(NOT _linked STREQUAL _text)
    file(WRITE "${_document}" "${_linked}")
  endif()
endforeach()
