// SPDX-License-Identifier: Apache-2.0
#include "host/activations.hpp"

#include <algorithm>

#include "host/run.hpp"
#include "tessera/kernels/accumulation_type.hpp"

namespace tessera::kernels::host {
namespace {

/// Rows whose weight gradients are summed together before the blocks are added in order.
constexpr std::int64_t rows_per_block = 64;

/// Columns of partial [blocks, dim] added from the first block to the last.
at::Tensor sum_of_blocks(const at::Tensor& partial) {
  at::Tensor total = partial[0];
  for (std::int64_t block = 1; block < partial.size(0); ++block) total.add_(partial[block]);
  return total;
}

/// Positions [first, first + count) of a sequence.
struct RowsOfSequence {
  std::int64_t sequence, first, count;
  std::int64_t in(const at::Tensor& x) const {
    return sequence * x.stride(0) + first * x.stride(1);
  }
};

template <class T>
void turn_heads(const RopePart& part, const RowsOfSequence& rows, const at::Tensor& cos,
                const at::Tensor& sin, bool inverse) {
  const at::Tensor &x = part.x, &y = part.y;
  const std::int64_t angles = rows.first * x.size(3) / 2;
  functions_of(T{}).rope(const_pointer<T>(x) + rows.in(x), const_pointer<Compute<T>>(cos) + angles,
                         const_pointer<Compute<T>>(sin) + angles, pointer<T>(y) + rows.in(y),
                         {rows.count, x.size(2), x.size(3), x.stride(1), y.stride(1)},
                         inverse ? -1 : 1);
}

template <class T>
void copy_heads(const RopePart& part, const RowsOfSequence& rows) {
  const T* from = const_pointer<T>(part.x) + rows.in(part.x);
  T* to = pointer<T>(part.y) + rows.in(part.y);
  for (std::int64_t i = 0; i < rows.count; ++i)
    std::copy_n(from + i * part.x.stride(1), part.x.size(2) * part.x.size(3),
                to + i * part.y.stride(1));
}

}  // namespace

NormValue rms_norm(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                   double eps) {
  const at::Tensor y = at::empty_like(x),
                   sum = residual.defined() ? at::empty_like(x) : at::Tensor();
  const at::Tensor rstd = at::empty({x.size(0)}, x.options().dtype(accumulation_type(x)));
  const std::int64_t dim = x.size(1);
  with_type(x.scalar_type(), [&]<class T>(T t) {
    for_rows(x.size(0), dim, [&](std::int64_t first, std::int64_t rows) {
      const std::int64_t at = first * dim;
      NormInput<T> in{const_pointer<T>(x) + at, nullptr, nullptr};
      if (sum.defined()) in = {in.x, const_pointer<T>(residual) + at, pointer<T>(sum) + at};
      functions_of(t).rms_norm(in, const_pointer<T>(weight), pointer<T>(y) + at,
                               pointer<Compute<T>>(rstd) + first, {rows, dim}, eps);
    });
  });
  return {sum, y, rstd};
}

std::pair<at::Tensor, at::Tensor> rms_norm_backward(const at::Tensor& dy, const at::Tensor& dsum,
                                                    const at::Tensor& x, const at::Tensor& weight,
                                                    const at::Tensor& rstd) {
  const at::Tensor dx = at::empty_like(x);
  const std::int64_t rows = x.size(0), dim = x.size(1);
  const std::int64_t blocks =
      std::max<std::int64_t>(1, (rows + rows_per_block - 1) / rows_per_block);
  const at::Tensor partial = at::zeros({blocks, dim}, x.options().dtype(accumulation_type(x)));
  with_type(x.scalar_type(), [&]<class T>(T t) {
    parallel_for(0, blocks, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t block = begin; block < end; ++block) {
        const std::int64_t first = block * rows_per_block, at = first * dim;
        const T* const more = pointer_or_null<T>(dsum);
        functions_of(t).rms_norm_backward(
            {const_pointer<T>(dy) + at, more == nullptr ? nullptr : more + at},
            const_pointer<T>(x) + at, const_pointer<T>(weight),
            const_pointer<Compute<T>>(rstd) + first, pointer<T>(dx) + at,
            pointer<Compute<T>>(partial) + block * dim,
            {std::min(rows_per_block, rows - first), dim});
      }
    });
  });
  return {dx, sum_of_blocks(partial).to(weight.scalar_type())};
}

void rope(std::span<const RopePart> parts, const at::Tensor& cos, const at::Tensor& sin,
          bool inverse) {
  const at::Tensor& first = parts.front().x;
  const std::int64_t seq = first.size(1);
  std::int64_t width = 0;
  for (const RopePart& part : parts) width += part.x.size(2) * part.x.size(3);
  with_type(first.scalar_type(), [&]<class T>(T) {
    for_rows(first.size(0) * seq, width, [&](std::int64_t begin, std::int64_t count) {
      for (std::int64_t at = begin; at < begin + count;) {
        const RowsOfSequence rows{at / seq, at % seq, std::min(seq - at % seq, begin + count - at)};
        for (const RopePart& part : parts)
          part.turns ? turn_heads<T>(part, rows, cos, sin, inverse) : copy_heads<T>(part, rows);
        at += rows.count;
      }
    });
  });
}

void row_max(const RowsOf& logits, const at::Tensor& max) {
  with_type(logits.tensor.scalar_type(), [&]<class T>(T t) {
    for_rows(logits.rows, logits.width, [&](std::int64_t first, std::int64_t rows) {
      functions_of(t).row_max(const_rows_from<T>(logits, first), pointer<Compute<T>>(max) + first,
                              {rows, logits.width});
    });
  });
}

void sum_exp(const RowsOf& logits, const at::Tensor& max, const at::Tensor& labels,
             std::int64_t vocab_begin, const SumExpAndTarget& out) {
  with_type(logits.tensor.scalar_type(), [&]<class T>(T t) {
    using C = Compute<T>;
    for_rows(logits.rows, logits.width, [&](std::int64_t first, std::int64_t rows) {
      functions_of(t).sum_exp(const_rows_from<T>(logits, first), const_pointer<C>(max) + first,
                              {const_pointer<std::int64_t>(labels) + first, vocab_begin},
                              pointer<C>(out.sum_exp) + first, pointer<C>(out.target) + first,
                              {rows, logits.width});
    });
  });
}

void softmax_gradient(const RowsOf& logits, const at::Tensor& max, const at::Tensor& sum_exp,
                      const at::Tensor& labels, std::int64_t vocab_begin, double scale) {
  with_type(logits.tensor.scalar_type(), [&]<class T>(T t) {
    using C = Compute<T>;
    for_rows(logits.rows, logits.width, [&](std::int64_t first, std::int64_t rows) {
      functions_of(t).softmax_gradient(rows_from<T>(logits, first), const_pointer<C>(max) + first,
                                       const_pointer<C>(sum_exp) + first,
                                       {const_pointer<std::int64_t>(labels) + first, vocab_begin},
                                       C(scale), {rows, logits.width});
    });
  });
}

}  // namespace tessera::kernels::host
