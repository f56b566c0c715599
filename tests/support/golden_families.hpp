// SPDX-License-Identifier: Apache-2.0
// The families of models in tests/golden/families, each a folder that make_families.py wrote.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace tessera::test {

inline std::vector<std::string> golden_families() {
  std::vector<std::string> names;
  for (const auto& folder :
       std::filesystem::directory_iterator(std::string(TESSERA_TEST_DATA) + "/families"))
    names.push_back(folder.path().filename().string());
  std::ranges::sort(names);
  return names;
}

}  // namespace tessera::test
