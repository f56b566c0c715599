// SPDX-License-Identifier: Apache-2.0
#include "operator_facts.hpp"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>

namespace tessera::sim {

bool takes_host_indices(std::string_view name) {
  constexpr std::array<std::string_view, 3> these{"aten::index", "aten::index_put_",
                                                  "aten::_index_put_impl_"};
  return std::ranges::count(these, name) > 0;
}

bool packs_in_pinned_memory(std::string_view name) {
  return name == "aten::_chunk_cat" || name == "aten::split_with_sizes_copy";
}

void refuse_atomic_adds(const c10::FunctionSchema& schema, const torch::jit::Stack& stack) {
  if (!schema.name().starts_with("aten::index_add")) return;
  const at::Tensor& sums = torch::jit::peek(stack, 0, schema.arguments().size()).toTensor();
  TORCH_CHECK(at::isIntegralType(sums.scalar_type(), /*includeBool=*/true), schema.name(), " of ",
              sums.scalar_type(), ": a GPU adds atomically, in any order and in this type");
}

}  // namespace tessera::sim
