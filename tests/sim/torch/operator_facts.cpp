// SPDX-License-Identifier: Apache-2.0
#include "operator_facts.hpp"

#include <ATen/core/Tensor.h>
#include <ATen/ops/sort.h>

#include <algorithm>
#include <array>

namespace tessera::sim {
namespace {

bool is_integral(const at::Tensor& tensor) {
  return at::isIntegralType(tensor.scalar_type(), /*includeBool=*/true);
}

}  // namespace

bool takes_host_indices(std::string_view name) {
  constexpr std::array<std::string_view, 3> these{"aten::index", "aten::index_put_",
                                                  "aten::_index_put_impl_"};
  return std::ranges::count(these, name) > 0;
}

bool packs_in_pinned_memory(std::string_view name) {
  return name == "aten::_chunk_cat" || name == "aten::split_with_sizes_copy";
}

void refuse_inexact_adds(const c10::FunctionSchema& schema, const torch::jit::Stack& stack) {
  constexpr std::array<std::string_view, 3> atomic{"aten::index_add", "aten::index_reduce",
                                                   "aten::scatter_reduce"};
  const bool adds = std::ranges::any_of(
                 atomic, [&](std::string_view name) { return schema.name().starts_with(name); }),
             rounds = schema.name() == "aten::embedding_dense_backward";
  if (!adds && !rounds) return;
  const at::Tensor& sums = torch::jit::peek(stack, 0, schema.arguments().size()).toTensor();
  TORCH_CHECK(!adds || is_integral(sums), schema.name(), " of ", sums.scalar_type(),
              ": a GPU adds atomically, in any order and in this type");
  TORCH_CHECK(!rounds || sums.element_size() > 2, schema.name(), " of ", sums.scalar_type(),
              ": a GPU may round to this type after each 32 tokens");
}

void refuse_repeated_adds(const c10::FunctionSchema& schema, const torch::jit::Stack& arguments) {
  if (!schema.name().starts_with("aten::scatter_add") || is_integral(arguments[0].toTensor()))
    return;
  const std::int64_t dim = arguments[1].toInt();
  const at::Tensor index = arguments[2].toTensor();
  if (index.dim() == 0 || index.size(dim) < 2) return;
  const at::Tensor sorted = std::get<0>(at::sort(index, dim));
  const std::int64_t pairs = index.size(dim) - 1;
  const bool repeats =
      sorted.narrow(dim, 0, pairs).eq(sorted.narrow(dim, 1, pairs)).any().item<bool>();
  TORCH_CHECK(!repeats, schema.name(), " of ", arguments[0].toTensor().scalar_type(),
              ", more than once to an element: a GPU adds atomically, in any order");
}

}  // namespace tessera::sim
