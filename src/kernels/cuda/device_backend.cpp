// SPDX-License-Identifier: Apache-2.0
// The CUDA table: tensors to launchers, on LibTorch's current stream. Compiled by the host's
// compiler.
#include <span>
#include <vector>

#include "backend.hpp"
#include "cuda/copied_types.hpp"
#include "cuda/launchers.hpp"
#include "cuda/stream_of.hpp"
#include "device_attention.hpp"
#include "device_results.hpp"
#include "float8.hpp"
#include "run_copies.hpp"
#include "tessera/base/gpu_failure.hpp"
#include "typed.hpp"

namespace tessera::kernels {

namespace device {

void check_launch(const char* kernel) {
  note_launch(kernel);
  const cudaError_t error = cudaGetLastError();
  require(!is_gpu_failure(error), ExitCode::environment, "{}",
          gpu_failure(fmt::format("{} ({})", cudaGetErrorString(error), cudaGetErrorName(error)),
                      kernel));
  require(error == cudaSuccess, ExitCode::environment,
          "kernel {} did not start ({}: {}); see that driver and GPU fit this build", kernel,
          cudaGetErrorName(error), cudaGetErrorString(error));
}

}  // namespace device

namespace {

template <class T>
Rows<T> rows_from(const RowsOf& r) {
  return tessera::kernels::rows_from<T>(r, 0);
}
template <class T>
Rows<const T> const_rows_from(const RowsOf& r) {
  return tessera::kernels::const_rows_from<T>(r, 0);
}

NormValue rms_norm(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                   double eps) {
  const NormValue value = device::norm_value(x, residual.defined());
  with_type(x.scalar_type(), [&]<class T>(T) {
    const NormInput<T> in{const_pointer<T>(x), pointer_or_null<T>(residual),
                          value.sum.defined() ? pointer<T>(value.sum) : nullptr};
    device::rms_norm(in, const_pointer<T>(weight), pointer<T>(value.y),
                     pointer<Compute<T>>(value.rstd), {x.size(0), x.size(1)}, eps, stream_of(x));
  });
  return value;
}

std::pair<at::Tensor, at::Tensor> rms_norm_backward(const at::Tensor& dy, const at::Tensor& dsum,
                                                    const at::Tensor& x, const at::Tensor& weight,
                                                    const at::Tensor& rstd) {
  const at::Tensor dx = at::empty_like(x), sums = device::weight_sums(x);
  with_type(x.scalar_type(), [&]<class T>(T) {
    using C = Compute<T>;
    const NormGradient<T> gradient{const_pointer<T>(dy), pointer_or_null<T>(dsum)};
    device::rms_norm_backward(gradient, const_pointer<T>(x), const_pointer<T>(weight),
                              const_pointer<C>(rstd), pointer<T>(dx), pointer<C>(sums),
                              {x.size(0), x.size(1)}, stream_of(x));
  });
  return {dx, sums.sum(0).to(weight.scalar_type())};
}

#define TESSERA_ON_TENSORS(name, Type)                                       \
  void name(const ElementOperands& operands) {                               \
    const RowsOf& out = operands.outputs.front();                            \
    with_type(out.tensor.scalar_type(), [&]<class T>(T) {                    \
      device::name(element_rows_from<T>(operands, 0), {out.rows, out.width}, \
                   stream_of(out.tensor));                                   \
    });                                                                      \
  }
TESSERA_ELEMENT_KERNELS(TESSERA_ON_TENSORS)
#undef TESSERA_ON_TENSORS

template <class T>
RopeParts<T> typed_parts(std::span<const RopePart> parts) {
  const at::Tensor& first = parts.front().x;
  RopeParts<T> typed{{}, 0, first.size(0), first.size(1), first.size(3)};
  for (const auto& [x, y, turns] : parts)
    typed.parts[typed.count++] = {const_pointer<T>(x), pointer<T>(y), x.size(2),   x.stride(0),
                                  x.stride(1),         y.stride(0),   y.stride(1), turns};
  return typed;
}

void rope(std::span<const RopePart> parts, const at::Tensor& cos, const at::Tensor& sin,
          bool inverse) {
  TESSERA_EXPECT(parts.size() <= most_rope_parts, "{} parts of a rotation", parts.size());
  with_type(parts.front().x.scalar_type(), [&]<class T>(T) {
    using C = Compute<T>;
    device::rope(typed_parts<T>(parts), const_pointer<C>(cos), const_pointer<C>(sin), inverse,
                 stream_of(cos));
  });
}

void row_max(const RowsOf& logits, const at::Tensor& max) {
  with_type(logits.tensor.scalar_type(), [&]<class T>(T) {
    device::row_max(const_rows_from<T>(logits), pointer<Compute<T>>(max),
                    {logits.rows, logits.width}, stream_of(max));
  });
}

void sum_exp(const RowsOf& logits, const at::Tensor& max, const at::Tensor& labels,
             std::int64_t vocab_begin, const SumExpAndTarget& out) {
  with_type(logits.tensor.scalar_type(), [&]<class T>(T) {
    using C = Compute<T>;
    device::sum_exp(const_rows_from<T>(logits), const_pointer<C>(max),
                    {const_pointer<std::int64_t>(labels), vocab_begin}, pointer<C>(out.sum_exp),
                    pointer<C>(out.target), {logits.rows, logits.width}, stream_of(max));
  });
}

void softmax_gradient(const RowsOf& logits, const at::Tensor& max, const at::Tensor& sum_exp,
                      const at::Tensor& labels, std::int64_t vocab_begin, double scale) {
  with_type(logits.tensor.scalar_type(), [&]<class T>(T) {
    using C = Compute<T>;
    device::softmax_gradient(rows_from<T>(logits), const_pointer<C>(max), const_pointer<C>(sum_exp),
                             {const_pointer<std::int64_t>(labels), vocab_begin}, C(scale),
                             {logits.rows, logits.width}, stream_of(max));
  });
}

at::Tensor block_squares(const at::Tensor& values) {
  const at::Tensor sums = device::square_sums(values);
  with_type(values.scalar_type(), [&]<class T>(T) {
    device::sum_of_squares(const_pointer<T>(values), values.numel(), pointer<double>(sums),
                           stream_of(values));
  });
  return sums;
}

at::Tensor exact_squares(const at::Tensor& values) {
  const at::Tensor words = device::exact_words(values);
  with_type(values.scalar_type(), [&]<class T>(T) {
    device::exact_squares(const_pointer<T>(values), values.numel(), pointer<std::int64_t>(words),
                          stream_of(values));
  });
  return words;
}

at::Tensor largest_of_lines(const at::Tensor& x, ScaledLines lines) {
  const at::Tensor largest = device::line_magnitudes(x, lines);
  with_type(x.scalar_type(), [&]<class T>(T) {
    device::largest_magnitudes(Rows<const T>{const_pointer<T>(x), x.stride(0)},
                               pointer<device::MagnitudeBits<T>>(largest), lines,
                               {x.size(0), x.size(1)}, stream_of(x));
  });
  return largest;
}

Float8Scales float8_scales(const at::Tensor& largest, DType type, bool powers_of_two) {
  const Float8Scales made = device::float8_scales(largest, largest.size(0), largest.size(1));
  const auto launch = [&]<class C>(C) {
    device::float8_scales(const_pointer<C>(largest), pointer<float>(made.scales),
                          pointer<float>(made.inverses), largest.numel(), largest_number(type),
                          powers_of_two, stream_of(largest));
  };
  largest.scalar_type() == at::kDouble ? launch(double{}) : launch(float{});
  return made;
}

void float8_bytes(const at::Tensor& x, const at::Tensor& scales, DType type, ByteOrder order,
                  const at::Tensor& bytes) {
  with_type(x.scalar_type(), [&]<class T>(T) {
    device::float8_bytes(Rows<const T>{const_pointer<T>(x), x.stride(0)},
                         const_pointer<float>(scales), scales.numel() == 1 ? 0 : 1,
                         {type == DType::f8e5m2, order == ByteOrder::columns},
                         pointer<std::uint8_t>(bytes), {x.size(0), x.size(1)}, stream_of(x));
  });
}

ScaledBytes float8_rows(const at::Tensor& x, DType type, bool powers_of_two) {
  const ScaledBytes result = device::float8_rows(x, type);
  with_type(x.scalar_type(), [&]<class T>(T) {
    device::float8_rows(Rows<const T>{const_pointer<T>(x), x.stride(0)}, type == DType::f8e5m2,
                        powers_of_two, pointer<float>(result.scales),
                        pointer<float>(result.inverses), pointer<std::uint8_t>(result.bytes),
                        {x.size(0), x.size(1)}, stream_of(x));
  });
  return result;
}

ScaledBothWays float8_both(const at::Tensor& x, DType type, bool powers_of_two) {
  const device::Float8Both made = device::float8_both(x, type);
  const Extent extent{x.size(0), x.size(1)};
  with_type(x.scalar_type(), [&]<class T>(T) {
    const Rows<const T> rows{const_pointer<T>(x), x.stride(0)};
    auto* const largest = pointer<device::MagnitudeBits<T>>(made.largest);
    device::largest_of_both(rows, largest, largest + made.first_column, extent, stream_of(x));
    auto* const scales = pointer<float>(made.scales.scales);
    device::float8_scales(const_pointer<Compute<T>>(made.largest), scales,
                          pointer<float>(made.scales.inverses), made.largest.numel(),
                          largest_number(type), powers_of_two, stream_of(x));
    device::float8_both(rows, type == DType::f8e5m2, {scales, scales + made.first_column},
                        {pointer<std::uint8_t>(made.results.rows.bytes),
                         pointer<std::uint8_t>(made.results.columns.bytes)},
                        extent, stream_of(x));
  });
  return made.results;
}

void adamw(const at::Tensor& param, const at::Tensor& grad, const at::Tensor& exp_avg,
           const at::Tensor& exp_avg_sq, const AdamWArguments& arguments,
           const at::Tensor& compute_copy) {
  with_adamw_types(param, grad, exp_avg, [&]<class P, class G, class M>(P, G, M) {
    device::adamw(pointer<P>(param), const_pointer<G>(grad), pointer<M>(exp_avg),
                  pointer<M>(exp_avg_sq),
                  compute_copy.defined() ? pointer<Bf16>(compute_copy) : nullptr, param.numel(),
                  arguments, stream_of(param));
  });
}

void copy_columns(const at::Tensor& matrix, std::span<const at::Tensor> parts) {
  if (parts.empty()) return;
  with_copied_types(matrix, parts.front(), [&]<class From, class To>(From, To) {
    const std::int64_t rows = matrix.size(0), stride = matrix.stride(0);
    const From* from = const_pointer<From>(matrix);
    std::vector<RowsCopy> copies;
    for (const at::Tensor& part : parts) {
      TESSERA_EXPECT(part.size(0) == rows, "a part with other rows");
      const std::int64_t width = part.size(1);
      copies.push_back({from, pointer<To>(part), stride, part.stride(0), width, rows * stride});
      from += width;
    }
    TESSERA_EXPECT(from == const_pointer<From>(matrix) + matrix.size(1), "parts of other columns");
    device::copy_rows<From, To>(copies, rows, stream_of(matrix));
  });
}

void copy_runs(const at::Tensor& into, std::span<const at::Tensor> tensors) {
  with_copied_types(tensors.front(), into, [&]<class From, class To>(From, To) {
    device::copy_rows<From, To>(run_copies<From, To>(into, tensors), into.size(0), stream_of(into));
  });
}

void add_runs(const at::Tensor& into, std::span<const at::Tensor> tensors) {
  with_type(tensors.front().scalar_type(), [&]<class T>(T) {
    device::add_rows<T>(run_copies<T, Compute<T>>(into, tensors), into.size(0), stream_of(into));
  });
}

const Backend device_table{
    .rms_norm = &rms_norm,
    .rms_norm_backward = &rms_norm_backward,
#define TESSERA_ENTRY(name, Type) .name = &name,
    TESSERA_ELEMENT_KERNELS(TESSERA_ENTRY)
#undef TESSERA_ENTRY
        .rope = &rope,
    .row_max = &row_max,
    .sum_exp = &sum_exp,
    .softmax_gradient = &softmax_gradient,
    .block_squares = &block_squares,
    .exact_squares = &exact_squares,
    .largest_of_lines = &largest_of_lines,
    .float8_scales = &float8_scales,
    .float8_bytes = &float8_bytes,
    .float8_rows = &float8_rows,
    .float8_both = &float8_both,
    .adamw = &adamw,
    .copy_columns = &copy_columns,
    .copy_runs = &copy_runs,
    .add_runs = &add_runs,
    .embedding = &device::embedding,
    .embedding_backward = &device::embedding_backward,
    .sum_of_choices = &device::sum_of_choices,
    .sum_of_choices_backward = &device::sum_of_choices_backward,
    .attends_in_bands = &device::attends_in_bands,
    .attention_part = &device::attention_part,
    .attention_part_backward = &device::attention_part_backward,
};

/// Linking this file in is what makes device tensors welcome.
[[maybe_unused]] const bool registered =
    (register_backend(c10::DeviceType::CUDA, device_table), true);

}  // namespace
}  // namespace tessera::kernels
