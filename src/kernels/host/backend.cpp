// SPDX-License-Identifier: Apache-2.0
// The host's table, and its flat kernels.
#include "backend.hpp"

#include <ATen/ops/_chunk_cat.h>
#include <ATen/ops/split_with_sizes_copy.h>

#include <algorithm>
#include <mutex>
#include <span>
#include <vector>

#include "host/activations.hpp"
#include "host/attention.hpp"
#include "host/run.hpp"
#include "run_copies.hpp"
#include "tessera/kernels/joined.hpp"

namespace tessera::kernels {
namespace {

/// body(first, count) over `count` elements in tasks that start at multiples of elements_per_task.
template <class Body>
void for_elements(std::int64_t count, const Body& body) {
  const std::int64_t blocks = (count + elements_per_task - 1) / elements_per_task;
  parallel_for(0, blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t first = begin * elements_per_task;
    body(first, std::min(count, end * elements_per_task) - first);
  });
}

at::Tensor block_squares(const at::Tensor& values) {
  constexpr std::int64_t block_size = 65536;
  const at::Tensor result =
      at::empty({(values.numel() + block_size - 1) / block_size}, at::kDouble);
  const std::span sums(pointer<double>(result), static_cast<std::size_t>(result.numel()));
  with_type(values.scalar_type(), [&]<class T>(T t) {
    parallel_for(
        0, static_cast<std::int64_t>(sums.size()), 1, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t block = begin; block < end; ++block) {
            const std::int64_t first = block * block_size;
            sums[block] = functions_of(t).sum_of_squares(
                const_pointer<T>(values) + first, std::min(block_size, values.numel() - first));
          }
        });
  });
  return result;
}

template <class T>
void add_squares(ExactSum& sum, std::span<const T> values) {
  if constexpr (std::is_same_v<T, Bf16>)
    sum.add_squares_bf16({reinterpret_cast<const std::uint16_t*>(values.data()), values.size()});
  else
    sum.add_squares(values);
}

at::Tensor exact_squares(const at::Tensor& values) {
  ExactSum sum;
  std::mutex merging;
  with_type(values.scalar_type(), [&]<class T>(T) {
    for_elements(values.numel(), [&](std::int64_t first, std::int64_t count) {
      ExactSum part;
      add_squares(part,
                  std::span(const_pointer<T>(values) + first, static_cast<std::size_t>(count)));
      const std::lock_guard lock(merging);
      sum.merge(part);
    });
  });
  const at::Tensor words = at::empty({ExactSum::word_count}, at::kLong);
  std::ranges::copy(sum.words(), pointer<std::int64_t>(words));
  return words;
}

AdamWSweep<double, double, double> sweep_of(double, double, double) {
  return host_functions().adamw_f64;
}
template <class P>
const AdamWFunctions<P>& adamw_of(P) {
  if constexpr (sizeof(P) == 2)
    return host_functions().adamw_bf16;
  else
    return host_functions().adamw_f32;
}
template <class P>
AdamWSweep<P, float, float> sweep_of(P p, float, float) {
  return adamw_of(p).wide;
}
template <class P>
AdamWSweep<P, Bf16, float> sweep_of(P p, Bf16, float) {
  return adamw_of(p).bf16_gradient;
}
template <class P>
AdamWSweep<P, float, Bf16> sweep_of(P p, float, Bf16) {
  return adamw_of(p).bf16_moments;
}
template <class P>
AdamWSweep<P, Bf16, Bf16> sweep_of(P p, Bf16, Bf16) {
  return adamw_of(p).bf16_both;
}

/// body(first, count, noise) for each piece of `count` elements from `first` on that are neighbours
/// in the whole parameter.
template <class Body>
void for_neighbours(const RoundingNoise& noise, std::int64_t first, std::int64_t count,
                    const Body& body) {
  const std::int64_t end = first + count;
  while (first < end) {
    const std::int64_t before = first % noise.run;
    const std::int64_t piece = std::min(noise.run - before, end - first);
    RoundingNoise moved = noise;
    moved.first += first / noise.run * noise.stride + before;
    body(first, piece, moved);
    first += piece;
  }
}

void adamw(const at::Tensor& param, const at::Tensor& grad, const at::Tensor& exp_avg,
           const at::Tensor& exp_avg_sq, const AdamWArguments& arguments,
           const at::Tensor& compute_copy) {
  Bf16* copy = compute_copy.defined() ? pointer<Bf16>(compute_copy) : nullptr;
  with_adamw_types(param, grad, exp_avg, [&]<class P, class G, class M>(P p, G g, M m) {
    const auto sweep = [&](std::int64_t first, std::int64_t count, const RoundingNoise& noise) {
      AdamWArguments these = arguments;
      these.noise = noise;
      sweep_of(p, g, m)(pointer<P>(param) + first, const_pointer<G>(grad) + first,
                        pointer<M>(exp_avg) + first, pointer<M>(exp_avg_sq) + first,
                        copy == nullptr ? nullptr : copy + first, count, these);
    };
    for_elements(param.numel(), [&](std::int64_t first, std::int64_t count) {
      for_neighbours(arguments.noise, first, count, sweep);
    });
  });
}

#define TESSERA_ON_TENSORS(name, Type)                                                  \
  void name(const ElementOperands& operands) {                                          \
    const RowsOf& out = operands.outputs.front();                                       \
    with_type(out.tensor.scalar_type(), [&]<class T>(T t) {                             \
      for_rows(out.rows, out.width, [&](std::int64_t first, std::int64_t rows) {        \
        functions_of(t).name(element_rows_from<T>(operands, first), {rows, out.width}); \
      });                                                                               \
    });                                                                                 \
  }
TESSERA_ELEMENT_KERNELS(TESSERA_ON_TENSORS)
#undef TESSERA_ON_TENSORS

void split_columns(const at::Tensor& matrix, std::span<const at::Tensor> parts) {
  std::vector<std::int64_t> widths;
  for (const at::Tensor& part : parts) widths.push_back(part.size(1));
  at::split_with_sizes_copy_out({parts.data(), parts.size()}, matrix, widths, 1);
}

/// put(to, from, count) for what each row of `into` gets of each tensor, and rest(to, count) for
/// what it lacks.
template <class T, class Put, class Rest>
void put_runs(const at::Tensor& into, std::span<const at::Tensor> tensors, const Put& put,
              const Rest& rest) {
  for (const RowsCopy& copy : run_copies<T, Compute<T>>(into, tensors))
    for (std::int64_t run = 0; run < into.size(0); ++run) {
      const auto* from = static_cast<const T*>(copy.from) + run * copy.from_stride;
      auto* to = static_cast<Compute<T>*>(copy.to) + run * copy.to_stride;
      const std::int64_t known =
          std::clamp<std::int64_t>(copy.count - run * copy.from_stride, 0, copy.width);
      for_elements(known, [&](std::int64_t first, std::int64_t count) {
        put(to + first, from + first, count);
      });
      if (known < copy.width) rest(to + known, copy.width - known);
    }
}

void cut_runs(const at::Tensor& into, std::span<const at::Tensor> tensors) {
  if (!can_add_runs(into, tensors.front())) {
    at::Tensor out = into;
    at::_chunk_cat_out(out, {tensors.data(), tensors.size()}, 0, into.size(0));
    return;
  }
  with_type(tensors.front().scalar_type(), [&]<class T>(T t) {
    put_runs<T>(into, tensors, functions_of(t).widen,
                [](Compute<T>* to, std::int64_t count) { std::fill_n(to, count, 0); });
  });
}

void sum_runs(const at::Tensor& into, std::span<const at::Tensor> tensors) {
  with_type(tensors.front().scalar_type(), [&]<class T>(T t) {
    put_runs<T>(into, tensors, functions_of(t).accumulate, [](Compute<T>*, std::int64_t) {});
  });
}

}  // namespace

const Backend host_backend{
    .rms_norm = &host::rms_norm,
    .rms_norm_backward = &host::rms_norm_backward,
#define TESSERA_ENTRY(name, Type) .name = &name,
    TESSERA_ELEMENT_KERNELS(TESSERA_ENTRY)
#undef TESSERA_ENTRY
        .rope = &host::rope,
    .row_max = &host::row_max,
    .sum_exp = &host::sum_exp,
    .softmax_gradient = &host::softmax_gradient,
    .block_squares = &block_squares,
    .exact_squares = &exact_squares,
    .largest_of_lines = nullptr,
    .float8_scales = nullptr,
    .float8_bytes = nullptr,
    .float8_rows = nullptr,
    .float8_both = nullptr,
    .adamw = &adamw,
    .copy_columns = &split_columns,
    .copy_runs = &cut_runs,
    .add_runs = &sum_runs,
    .embedding = &host::embedding,
    .embedding_backward = &host::embedding_backward,
    .sum_of_choices = &by_operators::sum_of_choices,
    .sum_of_choices_backward = &by_operators::sum_of_choices_backward,
    .attends_in_bands = nullptr,
    .attention_part = &host::attention_part,
    .attention_part_backward = &host::attention_part_backward,
};

}  // namespace tessera::kernels
