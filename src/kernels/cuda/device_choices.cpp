// SPDX-License-Identifier: Apache-2.0
#include "choices.hpp"

#include "cuda/launchers.hpp"
#include "cuda/stream_of.hpp"
#include "device_results.hpp"
#include "typed.hpp"

namespace tessera::kernels::device {
namespace {

template <class T>
ChoiceRows<T> choice_rows(const at::Tensor& rows, const at::Tensor& places,
                          const at::Tensor& weights, std::int64_t count, std::int64_t width) {
  return {pointer_or_null<T>(rows),
          const_pointer<std::int64_t>(places),
          pointer_or_null<Compute<T>>(weights),
          count,
          places.size(0),
          places.size(1),
          width};
}

}  // namespace

at::Tensor sum_of_choices(const at::Tensor& rows, const at::Tensor& places,
                          const at::Tensor& weights, Paired /*paired*/) {
  const at::Tensor sums = choice_sums(rows, places);
  with_type(rows.scalar_type(), [&]<class T>(T) {
    sum_of_choices(choice_rows<T>(rows, places, weights, rows.size(0), rows.size(1)),
                   pointer<T>(sums), stream_of(rows));
  });
  return sums;
}

std::pair<at::Tensor, at::Tensor> sum_of_choices_backward(
    const at::Tensor& gradient, const at::Tensor& rows, std::int64_t count,
    const at::Tensor& places, const at::Tensor& weights, Paired paired) {
  auto made = choice_gradients(gradient, count, places, weights, paired);
  with_type(gradient.scalar_type(), [&]<class T>(T) {
    using C = Compute<T>;
    const ChoiceGradients<T> to{pointer<T>(made.first),
                                weights.defined() ? pointer<C>(made.second) : nullptr};
    sum_of_choices_backward(choice_rows<T>(rows, places, weights, count, gradient.size(1)),
                            const_pointer<T>(gradient), to, stream_of(gradient));
  });
  return made;
}

}  // namespace tessera::kernels::device
