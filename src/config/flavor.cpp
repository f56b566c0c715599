// SPDX-License-Identifier: Apache-2.0
#include "tessera/config/flavor.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace tessera::config {

std::string shape_flavor(const std::string& flavor) {
  for (const std::string_view suffix : {"_flex_attn", "_varlen_attn", "_flex", "_varlen"})
    if (flavor.ends_with(suffix)) return flavor.substr(0, flavor.size() - suffix.size());
  return flavor;
}

bool masks_documents(const Model& model) {
  constexpr std::array<std::string_view, 3> kDeepSeek{"16B", "236B", "671B"};
  return shape_flavor(model.flavor) != model.flavor ||
         (model.name == "deepseek_v3" && !model.hf_config &&
          std::ranges::find(kDeepSeek, model.flavor) != kDeepSeek.end());
}

}  // namespace tessera::config
