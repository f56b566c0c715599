// SPDX-License-Identifier: Apache-2.0
// What blocks keep between forward and backward, in host memory meanwhile.
#include <algorithm>

#include "tessera/kernels/operation.hpp"
#include "tessera/kernels/torch_internal.hpp"
#include "tessera/parallel/stage.hpp"

namespace tessera::parallel {
namespace {

using at::Tensor;
using model::Flow;
using model::kSlotList;
using model::Slot;

std::int64_t storage_bytes(const Tensor& tensor) {
  return static_cast<std::int64_t>(kernels::storage_bytes(tensor));
}

std::vector<Tensor> tensors_of(const Flow& flow) {
  std::vector<Tensor> tensors;
  for (const Slot slot : kSlotList)
    if (flow[slot].defined()) tensors.push_back(flow[slot]);
  return tensors;
}

bool shares_memory(const Tensor& tensor, std::span<const Tensor> others) {
  return std::ranges::any_of(
      others, [&](const Tensor& other) { return other.defined() && other.is_alias_of(tensor); });
}

}  // namespace

/// What the unit hands on belongs to the next one. Sums of rows, as a norm's, are not worth a copy.
std::vector<Tensor> Unit::own_tensors(const TapeEntry& entry, std::span<const Tensor> saved) const {
  constexpr std::int64_t kLeastOfInput = 32;
  std::vector<Tensor> candidates = tensors_of(entry.in), own;
  const std::vector<Tensor> out = tensors_of(entry.out);
  std::int64_t input = 0;
  for (const Tensor& tensor : candidates) input = std::max(input, storage_bytes(tensor));
  candidates.insert(candidates.end(), saved.begin(), saved.end());
  for (const Tensor& tensor : candidates) {
    if (!tensor.defined() || tensor.is_cpu() || !tensor.is_floating_point()) continue;
    const std::int64_t bytes = storage_bytes(tensor);
    if (bytes * kLeastOfInput <= input || bytes % tensor.element_size() != 0) continue;
    if (shares_memory(tensor, out) || shares_memory(tensor, own)) continue;
    if (std::ranges::any_of(steps_, [&](const Step& step) {
          return shares_memory(tensor, step.buffers) ||
                 std::ranges::any_of(step.weights, [&](const model::Weight& weight) {
                   return weight.value.is_alias_of(tensor);
                 });
        }))
      continue;
    own.push_back(tensor);
  }
  return own;
}

/// What this pass needs is there, and what the next one needs comes back while it computes.
void Stage::fetch_for_backward(const TapeEntry& entry, int microbatch, std::size_t unit) {
  if (!tape_.offload) return;
  tape_.offload->hold_for(entry.offloaded);
  if (unit > 0) fetch(microbatch, unit - 1);
}

void Stage::fetch(int microbatch, std::size_t unit) {
  if (tape_.offload) tape_.offload->fetch(tape_.passes.at({microbatch, unit}).offloaded);
}

}  // namespace tessera::parallel
