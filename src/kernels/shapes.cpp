// SPDX-License-Identifier: Apache-2.0
// The table of kernels for tensors without values: what device_backend.cpp allocates.
#include "tessera/kernels/shapes.hpp"

#include "backend.hpp"
#include "device_attention.hpp"
#include "device_results.hpp"
#include "shape_memory.hpp"
#include "shape_operators.hpp"

namespace tessera::kernels {
namespace {

NormValue rms_norm(const at::Tensor& x, const at::Tensor& residual, const at::Tensor&, double) {
  return device::norm_value(x, residual.defined());
}

std::pair<at::Tensor, at::Tensor> rms_norm_backward(const at::Tensor&, const at::Tensor&,
                                                    const at::Tensor& x, const at::Tensor& weight,
                                                    const at::Tensor&) {
  return {at::empty_like(x), device::weight_sums(x).sum(0).to(weight.scalar_type())};
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
    .block_squares = &device::square_sums,
    .exact_squares = &device::exact_words,
    .largest_of_lines = &device::line_magnitudes,
    .float8_scales =
        [](const at::Tensor& largest, DType, bool) {
          return device::float8_scales(largest, largest.size(0), largest.size(1));
        },
    .float8_bytes = [](const at::Tensor&, const at::Tensor&, DType, ByteOrder,
                       const at::Tensor&) {},
    .float8_rows = [](const at::Tensor& x, DType type,
                      bool) { return device::float8_rows(x, type); },
    .float8_both = [](const at::Tensor& x, DType type,
                      bool) { return device::float8_both(x, type).results; },
    .adamw = [](const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                const AdamWArguments&, const at::Tensor&) {},
    .copy_columns = [](const at::Tensor&, std::span<const at::Tensor>) {},
    .copy_runs = [](const at::Tensor&, std::span<const at::Tensor>) {},
    .add_runs = [](const at::Tensor&, std::span<const at::Tensor>) {},
    .embedding = [](const at::Tensor& table, const at::Tensor& tokens,
                    std::int64_t) { return device::embedding_rows(table, tokens); },
    .embedding_backward = [](const at::Tensor& gradient, const SortedTokens&,
                             VocabularyRows of) { return device::table_gradient(gradient, of); },
    .sum_of_choices = [](const at::Tensor& rows, const at::Tensor& places, const at::Tensor&,
                         Paired) { return device::choice_sums(rows, places); },
    .sum_of_choices_backward =
        [](const at::Tensor& gradient, const at::Tensor&, std::int64_t count,
           const at::Tensor& places, const at::Tensor& weights, Paired paired) {
          return device::choice_gradients(gradient, count, places, weights, paired);
        },
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
