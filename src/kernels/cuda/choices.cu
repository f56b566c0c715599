// SPDX-License-Identifier: Apache-2.0
// Sums of the rows that tokens have in several places: no row is copied into the order of tokens.
#include "cuda/packs.cuh"

namespace tessera::kernels::device {
namespace {

template <class T>
std::vector<Operand> operands_of(const ChoiceRows<T>& of) {
  const std::int64_t choices = of.tokens * of.choices;
  return {reads(of.rows, of.count * of.width), reads(of.places, choices),
          reads(of.weights, choices)};
}

/// A thread takes a pack of a token's sum.
template <int size, class T>
void sum_packs(const ChoiceRows<T>& of, T* sums, cudaStream_t stream) {
  using C = Compute<T>;
  std::vector<Operand> operands = operands_of(of);
  operands.push_back(writes(sums, of.tokens * of.width));
  for_packs<size>("sum_of_choices", {of.tokens, of.width}, stream, std::move(operands),
                  [=] __device__(std::int64_t token, std::int64_t column) {
                    const std::int64_t first = token * of.choices;
                    C sum[size] = {};
#pragma unroll 4
                    for (int k = 0; k < of.choices; ++k) {
                      const std::int64_t place = of.places[first + k];
                      if (place < 0) continue;
                      const auto pack = load<size>(of.rows + place * of.width + column);
                      const C weight = of.weights == nullptr ? C(1) : of.weights[first + k];
#pragma unroll
                      for (int i = 0; i < size; ++i)
                        sum[i] = fma(weight, wide(pack.items[i]), sum[i]);
                    }
                    Pack<T, size> result;
#pragma unroll
                    for (int i = 0; i < size; ++i) result.items[i] = narrow<T>(sum[i]);
                    store<size>(sums + token * of.width + column, result);
                  });
}

/// A warp takes a choice: the gradient of its row, and that of its weight.
template <int size, class T>
void spread_packs(const ChoiceRows<T>& of, const T* gradient, const ChoiceGradients<T>& made,
                  cudaStream_t stream) {
  using C = Compute<T>;
  const std::int64_t choices = of.tokens * of.choices;
  std::vector<Operand> operands = operands_of(of);
  operands.push_back(reads(gradient, of.tokens * of.width));
  operands.push_back(writes(made.of_rows, of.count * of.width));
  operands.push_back(writes(made.of_weights, choices));
  launch({"sum_of_choices_backward", (choices + warps_per_block - 1) / warps_per_block, 0, stream,
          std::move(operands)},
         [=] __device__(std::int64_t block, unsigned char*) {
           const std::int64_t choice = block * warps_per_block + threadIdx.x / 32;
           if (choice >= choices) return;
           const bool weighted = of.weights != nullptr;
           const C weight = weighted ? of.weights[choice] : C(1);
           const T* const from = gradient + divided(choice, of.choices).quotient * of.width;
           const std::int64_t row = of.places[choice] * of.width;
           C product = 0;
           if (row < 0) {
             if (weighted && threadIdx.x % 32 == 0) made.of_weights[choice] = 0;
             return;
           }
#pragma unroll 4
           for (std::int64_t i = threadIdx.x % 32 * size; i < of.width; i += 32 * size) {
             const auto g = load<size>(from + i);
             const auto x = weighted ? load<size>(of.rows + row + i) : Pack<T, size>{};
             Pack<T, size> result;
#pragma unroll
             for (int k = 0; k < size; ++k) {
               result.items[k] = narrow<T>(weight * wide(g.items[k]));
               product = fma(wide(g.items[k]), wide(x.items[k]), product);
             }
             store<size>(made.of_rows + row + i, result);
           }
           if (!weighted) return;
           product = reduce_warp(product, Add{});
           if (threadIdx.x % 32 == 0) made.of_weights[choice] = product;
         });
}

template <class T>
bool fits(const ChoiceRows<T>& of, const T* other, const T* third) {
  constexpr int size = pack_size<T>;
  return rows_fit(size, of.width, rows(of.rows, of.width), rows(other, of.width),
                  rows(third, of.width));
}

}  // namespace

template <class T>
void sum_of_choices(const ChoiceRows<T>& of, T* sums, cudaStream_t stream) {
  fits<T>(of, sums, sums) ? sum_packs<pack_size<T>>(of, sums, stream)
                          : sum_packs<1>(of, sums, stream);
}

template <class T>
void sum_of_choices_backward(const ChoiceRows<T>& of, const T* gradient,
                             const ChoiceGradients<T>& made, cudaStream_t stream) {
  fits<T>(of, gradient, made.of_rows) ? spread_packs<pack_size<T>>(of, gradient, made, stream)
                                      : spread_packs<1>(of, gradient, made, stream);
}

#define TESSERA_INSTANTIATE(T)                                             \
  template void sum_of_choices<T>(const ChoiceRows<T>&, T*, cudaStream_t); \
  template void sum_of_choices_backward<T>(const ChoiceRows<T>&, const T*, \
                                           const ChoiceGradients<T>&, cudaStream_t);
TESSERA_FOR_TYPES(TESSERA_INSTANTIATE)

}  // namespace tessera::kernels::device
