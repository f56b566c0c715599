// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/memory_kinds.hpp"

#include <algorithm>
#include <utility>

#include "tessera/kernels/torch_internal.hpp"
#include "tessera/metrics/human.hpp"
#include "tessera/parallel/stages.hpp"

namespace tessera::parallel {

std::string MemoryKinds::text() const {
  std::string text;
  for (const auto& [name, bytes] : {std::pair{"weights", weights},
                                    {"gradients", gradients},
                                    {"moments", moments},
                                    {"gathered weights", gathered},
                                    {"communication", communication},
                                    {"activations and other", activations}})
    if (bytes > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, metrics::human_bytes(bytes));
  if (on_host > 0)
    text += fmt::format(", and activations in host memory {}", metrics::human_bytes(on_host));
  return text;
}

std::int64_t bytes_on(at::Device device, const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.device() != device) return 0;
  return static_cast<std::int64_t>(kernels::storage_bytes(tensor));
}

MemoryPeak::MemoryPeak(at::Device device)
    : device_(device), before_(device.is_cpu() ? kernels::allocated_bytes(device) : 0) {}

std::int64_t MemoryPeak::allocated() const {
  return kernels::allocated_bytes(device_) - before_ + registered_bytes();
}

void MemoryPeak::note(std::int64_t allocated, const MemoryKinds& known) {
  most_ = allocated;
  kinds_ = known;
  kinds_.activations = std::max<std::int64_t>(0, allocated - known.total());
}

void ShardGroup::add_memory(MemoryKinds& kinds) const {
  const auto bytes = [this](const at::Tensor& tensor) { return bytes_on(options_.device, tensor); };
  if (!options_.home) kinds.weights += bytes(flat_master_);
  at::Tensor last;  // gradients that were made together share their memory
  for (const ShardedParam& param : params_) {
    const at::Tensor gradient = param.leaf.grad();
    if (!gradient.defined() || (last.defined() && gradient.is_alias_of(last))) continue;
    kinds.gradients += bytes(gradient);
    last = gradient;
  }
  if (!aliased()) kinds.gathered += bytes(weights_memory_);
  kinds.gathered += bytes(kept_.part);
  const at::Tensor& staged = upload_.staged;
  kinds.communication += bytes(gather_.out) + bytes(staged);
  const at::Tensor& from = kept_.part.defined() ? kept_.part
                           : staged.defined()   ? staged
                                                : flat_master_;
  if (!gather_.in.defined() || gather_.in.is_alias_of(from)) return;
  const bool in_place = gather_.out.defined() && gather_.in.is_alias_of(gather_.out);
  if (!in_place) kinds.communication += bytes(gather_.in);
}

std::int64_t gather_bytes(const ShardGroup& group) {
  return group.gathered_bytes() + group.gathered_bytes() / group.fsdp().size();
}

MemoryKinds Stages::memory() const {
  MemoryKinds kinds;
  for (const auto& stage : stages_) {
    kinds.on_host += stage->offload_bytes();
    for (const auto& group : stage->weights().groups()) group->add_memory(kinds);
  }
  reducer_.add_memory(kinds);
  return kinds;
}

}  // namespace tessera::parallel
