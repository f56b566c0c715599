// SPDX-License-Identifier: Apache-2.0
// What a device must offer: the kernels on tensors whose shapes, types and layout were checked. The
// host's table is built in; files for other devices register theirs when they are linked in.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "choices.hpp"
#include "element_kernels.hpp"
#include "embedding.hpp"
#include "row_types.hpp"
#include "tessera/kernels/attention_part.hpp"
#include "tessera/kernels/cross_entropy.hpp"
#include "tessera/kernels/exact_sum.hpp"
#include "tessera/kernels/scaled_bytes.hpp"

namespace tessera::kernels {

/// A tensor read as rows of `width` contiguous elements, `stride` apart.
struct RowsOf {
  at::Tensor tensor;
  std::int64_t rows, width, stride;
};

/// `x` [..., width] as rows, copied only when its leading dims do not have one stride.
RowsOf rows_of(const at::Tensor& x);

/// Rows of one extent and dtype, in the order of the kernel's type in element_kernels.hpp.
struct ElementOperands {
  std::vector<RowsOf> inputs, outputs;
  ElementNumbers numbers = {};
};
using ElementKernel = void (*)(const ElementOperands& operands);

struct NormValue {
  at::Tensor sum;   ///< x + residual
  at::Tensor y;     ///< the norm of the sum, or of x
  at::Tensor rstd;  ///< [rows]
};

/// Heads of some tokens, x [B, S, H, hd] and y with strides (any, any, hd, 1): turned, or copied.
struct RopePart {
  at::Tensor x, y;  ///< the same tensor, or tensors that share nothing
  bool turns = true;
};

struct Float8Scales {
  at::Tensor scales, inverses;  ///< of one shape
};

struct Backend {
  /// x and residual [rows, D] contiguous, weight [D]; the residual may be undefined, and then the
  /// sum is.
  NormValue (*rms_norm)(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                        double eps);
  /// Gradients of y and of the sum, which may be undefined; x is what was normed -> dx, dweight.
  std::pair<at::Tensor, at::Tensor> (*rms_norm_backward)(const at::Tensor& dy,
                                                         const at::Tensor& dsum,
                                                         const at::Tensor& x,
                                                         const at::Tensor& weight,
                                                         const at::Tensor& rstd);
#define TESSERA_MEMBER(name, Type) ElementKernel name;
  TESSERA_ELEMENT_KERNELS(TESSERA_MEMBER)
#undef TESSERA_MEMBER
  /// At most most_rope_parts parts of the same tokens, in one pass.
  void (*rope)(std::span<const RopePart> parts, const at::Tensor& cos, const at::Tensor& sin,
               bool inverse);
  /// labels int64, contiguous.
  void (*row_max)(const RowsOf& logits, const at::Tensor& max);
  void (*sum_exp)(const RowsOf& logits, const at::Tensor& max, const at::Tensor& labels,
                  std::int64_t vocab_begin, const SumExpAndTarget& out);
  void (*softmax_gradient)(const RowsOf& logits, const at::Tensor& max, const at::Tensor& sum_exp,
                           const at::Tensor& labels, std::int64_t vocab_begin, double scale);
  /// See square_sums.hpp.
  at::Tensor (*block_squares)(const at::Tensor& values);
  at::Tensor (*exact_squares)(const at::Tensor& values);
  /// Of x [m, n] with rows of neighbours: as one row, one column or one number. Null, these five:
  /// LibTorch's operators do it.
  at::Tensor (*largest_of_lines)(const at::Tensor& x, ScaledLines lines);
  /// See scaled_bytes.hpp.
  Float8Scales (*float8_scales)(const at::Tensor& largest, DType type, bool powers_of_two);
  /// One scale, or one for each line along which the bytes lie.
  void (*float8_bytes)(const at::Tensor& x, const at::Tensor& scales, DType type, ByteOrder order,
                       const at::Tensor& bytes);
  /// Each row by its own largest magnitude.
  ScaledBytes (*float8_rows)(const at::Tensor& x, DType type, bool powers_of_two);
  /// The same, and each column by its own.
  ScaledBothWays (*float8_both)(const at::Tensor& x, DType type, bool powers_of_two);
  void (*adamw)(const at::Tensor& param, const at::Tensor& grad, const at::Tensor& exp_avg,
                const at::Tensor& exp_avg_sq, const AdamWArguments& arguments,
                const at::Tensor& compute_copy);
  /// As joined.hpp says, with tensors of one type on each side. `tensors` are contiguous, and none
  /// is empty; the rows of all matrices are dense.
  void (*copy_columns)(const at::Tensor& matrix, std::span<const at::Tensor> parts);
  void (*copy_runs)(const at::Tensor& into, std::span<const at::Tensor> tensors);
  void (*add_runs)(const at::Tensor& into, std::span<const at::Tensor> tensors);
  /// See embedding.hpp.
  Embedding* embedding;
  EmbeddingBackward* embedding_backward;
  /// See choices.hpp.
  ChoiceSum* sum_of_choices;
  ChoiceSumBackward* sum_of_choices_backward;
  /// As attention_part.hpp says; null: no part may have bands.
  bool (*attends_in_bands)(const AttentionPart& part);
  AttentionValue (*attention_part)(const AttentionPart& part);
  AttentionGradients (*attention_part_backward)(const AttentionPart& part,
                                                const AttentionValue& merged,
                                                const at::Tensor& grad_out);
};

extern const Backend host_backend;

/// Makes `backend` serve tensors of `device`; it must live as long as the program.
void register_backend(c10::DeviceType device, const Backend& backend);

/// The backend of the tensor's device. Throws Error(environment) for a device that this build does
/// not serve.
const Backend& backend_of(const at::Tensor& tensor);

}  // namespace tessera::kernels
