// SPDX-License-Identifier: Apache-2.0
// Softmax cross-entropy on the device: one block of threads for each row of logits.
#include "cuda/launch.cuh"

namespace tessera::kernels::device {
namespace {

template <int size, class T>
void find_max(Rows<const T> logits, Compute<T>* max, Extent extent, cudaStream_t stream) {
  using C = Compute<T>;
  const auto body = [=] __device__(std::int64_t row, unsigned char* shared) {
    const T* const x = logits.data + row * logits.stride;
    C best = -C(__builtin_inf());
    for (std::int64_t i = threadIdx.x * size; i < extent.width; i += blockDim.x * size) {
      const auto v = load<size>(x + i);
      for (int k = 0; k < size; ++k) best = Max{}(best, wide(v.items[k]));
    }
    best = reduce_block(best, reinterpret_cast<C*>(shared), Max{});
    if (threadIdx.x == 0) max[row] = best;
  };
  launch({"row_max",
          extent.rows,
          sizeof(C) * 32,
          stream,
          {reads(logits, extent), writes(max, extent.rows)}},
         body);
}

template <int size, class T>
void add_exponentials(Rows<const T> logits, const Compute<T>* max, RowLabels labels,
                      Compute<T>* sum, Compute<T>* target, Extent extent, cudaStream_t stream) {
  using C = Compute<T>;
  const auto body = [=] __device__(std::int64_t row, unsigned char* shared) {
    const T* const x = logits.data + row * logits.stride;
    const C m = max[row];
    C part = 0;
    for (std::int64_t i = threadIdx.x * size; i < extent.width; i += blockDim.x * size) {
      const auto v = load<size>(x + i);
      for (int k = 0; k < size; ++k) part += exponential(wide(v.items[k]) - m);
    }
    const double total =
        reduce_block(static_cast<double>(part), reinterpret_cast<double*>(shared), Add{});
    if (threadIdx.x != 0) return;
    const std::int64_t column = labels.labels[row] - labels.vocab_begin;
    const bool here = labels.labels[row] != ignored_row && column >= 0 && column < extent.width;
    sum[row] = C(total);
    target[row] = here ? wide(x[column]) - m : C(0);
  };
  launch({"sum_exp",
          extent.rows,
          sizeof(double) * 32,
          stream,
          {reads(logits, extent), reads(max, extent.rows), reads(labels.labels, extent.rows),
           writes(sum, extent.rows), writes(target, extent.rows)}},
         body);
}

template <int size, class T>
void put_gradient(Rows<T> logits, const Compute<T>* max, const Compute<T>* sum, RowLabels labels,
                  Compute<T> scale, Extent extent, cudaStream_t stream) {
  using C = Compute<T>;
  const auto body = [=] __device__(std::int64_t row, unsigned char*) {
    T* const x = logits.data + row * logits.stride;
    const bool ignored = labels.labels[row] == ignored_row;
    const std::int64_t column = labels.labels[row] - labels.vocab_begin;
    const C m = max[row], factor = scale / sum[row];
    for (std::int64_t i = threadIdx.x * size; i < extent.width; i += blockDim.x * size) {
      auto v = load<size>(x + i);
      for (int k = 0; k < size; ++k) {
        const C softmax = exponential(wide(v.items[k]) - m) * factor;
        v.items[k] = narrow<T>(ignored ? C(0) : i + k == column ? softmax - scale : softmax);
      }
      store<size>(x + i, v);
    }
  };
  launch({"softmax_gradient",
          extent.rows,
          0,
          stream,
          {writes(logits, extent), reads(max, extent.rows), reads(sum, extent.rows),
           reads(labels.labels, extent.rows)}},
         body);
}

}  // namespace

template <class T>
void row_max(Rows<const T> logits, Compute<T>* max, Extent extent, cudaStream_t stream) {
  constexpr int size = pack_size<T>;
  if (rows_fit(size, extent.width, logits))
    find_max<size>(logits, max, extent, stream);
  else
    find_max<1>(logits, max, extent, stream);
}

template <class T>
void sum_exp(Rows<const T> logits, const Compute<T>* max, RowLabels labels, Compute<T>* sum,
             Compute<T>* target, Extent extent, cudaStream_t stream) {
  constexpr int size = pack_size<T>;
  if (rows_fit(size, extent.width, logits))
    add_exponentials<size>(logits, max, labels, sum, target, extent, stream);
  else
    add_exponentials<1>(logits, max, labels, sum, target, extent, stream);
}

template <class T>
void softmax_gradient(Rows<T> logits, const Compute<T>* max, const Compute<T>* sum,
                      RowLabels labels, Compute<T> scale, Extent extent, cudaStream_t stream) {
  constexpr int size = pack_size<T>;
  if (rows_fit(size, extent.width, logits))
    put_gradient<size>(logits, max, sum, labels, scale, extent, stream);
  else
    put_gradient<1>(logits, max, sum, labels, scale, extent, stream);
}

#define TESSERA_INSTANTIATE(T)                                                                 \
  template void row_max(Rows<const T>, Compute<T>*, Extent, cudaStream_t);                     \
  template void sum_exp(Rows<const T>, const Compute<T>*, RowLabels, Compute<T>*, Compute<T>*, \
                        Extent, cudaStream_t);                                                 \
  template void softmax_gradient(Rows<T>, const Compute<T>*, const Compute<T>*, RowLabels,     \
                                 Compute<T>, Extent, cudaStream_t);
TESSERA_FOR_TYPES(TESSERA_INSTANTIATE)

}  // namespace tessera::kernels::device
