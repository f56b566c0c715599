// SPDX-License-Identifier: Apache-2.0
// The table of kernels for tensors without values: what device_backend.cpp allocates.
#include "tessera/kernels/shapes.hpp"

#include "backend.hpp"
#include "device_attention.hpp"
#include "launch_sizes.hpp"
#include "shape_memory.hpp"
#include "shape_operators.hpp"

namespace tessera::kernels {
namespace {

NormValue rms_norm(const at::Tensor& x, const at::Tensor& residual, const at::Tensor&, double) {
  return {residual.defined() ? at::empty_like(x) : at::Tensor(), at::empty_like(x),
          at::empty({x.size(0)}, x.options().dtype(compute_type(x)))};
}

std::pair<at::Tensor, at::Tensor> rms_norm_backward(const at::Tensor&, const at::Tensor&,
                                                    const at::Tensor& x, const at::Tensor& weight,
                                                    const at::Tensor&) {
  const std::int64_t blocks = (x.size(0) + device::rows_per_block - 1) / device::rows_per_block;
  const at::Tensor dx = at::empty_like(x),
                   sums = at::empty({blocks, x.size(1)}, x.options().dtype(compute_type(x)));
  return {dx, sums.sum(0).to(weight.scalar_type())};
}

at::Tensor block_squares(const at::Tensor& values) {
  const std::int64_t blocks =
      (values.numel() + device::squares_per_block - 1) / device::squares_per_block;
  return at::empty({blocks}, values.options().dtype(at::kDouble));
}

at::Tensor exact_squares(const at::Tensor& values) {
  return at::zeros({ExactSum::word_count}, values.options().dtype(at::kLong));
}

/// Kernels that write into what they are given.
const Backend shape_table{
    .rms_norm = &rms_norm,
    .rms_norm_backward = &rms_norm_backward,
#define TESSERA_ENTRY(name, Type) .name = [](const ElementOperands&) {},
    TESSERA_ELEMENT_KERNELS(TESSERA_ENTRY)
#undef TESSERA_ENTRY
        .rope = [](std::span<const RopePart>, const at::Tensor&, const at::Tensor&, bool) {},
    .row_max = [](const RowsOf&, const at::Tensor&) {},
    .sum_exp = [](const RowsOf&, const at::Tensor&, const at::Tensor&, std::int64_t,
                  const SumExpAndTarget&) {},
    .softmax_gradient = [](const RowsOf&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                           std::int64_t, double) {},
    .block_squares = &block_squares,
    .exact_squares = &exact_squares,
    .adamw = [](const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                const AdamWArguments&, const at::Tensor&) {},
    .attends_in_bands = &device::attends_in_bands,
    .attention_part = &device::attention_part,
    .attention_part_backward = &device::attention_part_backward,
};

}  // namespace

at::Device shape_device() {
  install_shape_memory();
  install_shape_operators();
  register_backend(c10::DeviceType::Meta, shape_table);
  return at::kMeta;
}

}  // namespace tessera::kernels
