// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/weight_scales.hpp"

#include "tessera/base/error.hpp"
#include "tessera/parallel/tensor_buffer.hpp"

namespace tessera::parallel {

using at::Tensor;

namespace {

constexpr std::int64_t kApart = 4;  ///< numbers: products on devices want scales at 16 bytes

}  // namespace

WeightScales::WeightScales(std::int64_t weights, comm::Communicator& fsdp, comm::Communicator& tp,
                           at::Device device)
    : fsdp_(fsdp),
      tp_(tp),
      scales_(at::ones({weights, kApart}, at::TensorOptions(at::kFloat).device(device))),
      inverses_(at::ones_like(scales_)) {}

kernels::ScaledBytes WeightScales::add(const Tensor& master) {
  const std::int64_t i = std::ssize(masters_);
  TESSERA_EXPECT(i < scales_.size(0), "{} scales for more weights", scales_.size(0));
  masters_.push_back(master);
  const auto number = [i](const Tensor& all) { return all.narrow(0, i, 1).narrow(1, 0, 1); };
  return {{}, number(scales_), DType::f8e4m3, {}, number(inverses_)};
}

namespace {

/// [1, 1]; of a rank without rows, 0.
Tensor largest_of(const Tensor& master) {
  const Tensor largest = kernels::largest_magnitudes(master, {});
  return largest.numel() > 0 ? largest : at::zeros({1, 1}, largest.options());
}

}  // namespace

void WeightScales::refresh() {
  if (current_) return;
  const at::NoGradGuard no_grad;
  std::vector<Tensor> largest;
  for (const Tensor& master : masters_) largest.push_back(largest_of(master));
  Tensor all = at::cat(largest);
  if (all.device() != scales_.device())  // masters in host memory; no one waits for the copy
    all = all.pin_memory().to(scales_.device(), all.scalar_type(), /*non_blocking=*/true);
  for (comm::Communicator* ranks : {&fsdp_, &tp_})
    if (ranks->size() > 1) ranks->all_reduce(buffer_of(all), comm::Op::max).wait();
  // Spread over the numbers that keep them apart.
  scales_.copy_(kernels::scales_for(all, DType::f8e4m3, false));
  inverses_.copy_(scales_.reciprocal());
  current_ = true;
}

}  // namespace tessera::parallel
