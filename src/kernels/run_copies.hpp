// SPDX-License-Identifier: Apache-2.0
// How copy_runs() and add_runs() cut tensors for every device.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <span>
#include <vector>

#include "row_types.hpp"
#include "tessera/base/error.hpp"
#include "typed.hpp"

namespace tessera::kernels {

/// One for each tensor; its rows are those of `into`.
template <class From, class To>
std::vector<RowsCopy> run_copies(const at::Tensor& into, std::span<const at::Tensor> tensors) {
  const std::int64_t runs = into.size(0);
  To* to = pointer<To>(into);
  std::vector<RowsCopy> copies;
  for (const at::Tensor& tensor : tensors) {
    const std::int64_t count = tensor.numel(), rows = tensor.size(0);
    const std::int64_t width = (rows + runs - 1) / runs * (count / rows);
    copies.push_back({const_pointer<From>(tensor), to, width, into.stride(0), width, count});
    to += width;
  }
  TESSERA_EXPECT(to == pointer<To>(into) + into.size(1), "runs of another size");
  return copies;
}

}  // namespace tessera::kernels
