// SPDX-License-Identifier: Apache-2.0
#include "widening.hpp"

#include "host/run.hpp"
#include "host/transposed.hpp"

namespace tessera::kernels {
namespace {

using at::Tensor;

/// A tensor as `count` runs of `size` contiguous elements, `stride` apart.
struct Runs {
  std::int64_t count = 1, size = 1, stride = 0;
};

std::optional<Runs> runs_of(const Tensor& x) {
  if (x.is_contiguous()) return Runs{1, x.numel(), x.numel()};
  if (x.dim() == 2 && x.stride(1) == 1) return Runs{x.size(0), x.size(1), x.stride(0)};
  return std::nullopt;
}

/// body(row, first, count): elements of runs, in parallel.
template <class Body>
void for_parts(const Runs& runs, const Body& body) {
  if (runs.count > 1) {
    for_rows(runs.count, runs.size, [&](std::int64_t begin, std::int64_t count) {
      for (std::int64_t row = begin; row < begin + count; ++row) body(row, 0, runs.size);
    });
  } else {
    parallel_for(0, runs.size, elements_per_task,
                 [&](std::int64_t begin, std::int64_t end) { body(0, begin, end - begin); });
  }
}

}  // namespace

Tensor widened(const Tensor& x) {
  if (by_columns(x)) return widened(x.t()).t();
  const auto runs = runs_of(x);
  if (!runs) return widened(x.contiguous());
  const Tensor wide = at::empty(x.sizes(), x.options().dtype(at::kFloat));
  for_parts(*runs, [&](std::int64_t row, std::int64_t first, std::int64_t count) {
    host_functions().bf16.widen(pointer<float>(wide) + row * runs->size + first,
                                const_pointer<Bf16>(x) + row * runs->stride + first, count);
  });
  return wide;
}

void narrow_into(const Tensor& out, const Tensor& wide) {
  const auto runs = runs_of(out);
  if (!runs || !wide.is_contiguous()) {
    out.copy_(wide);
    return;
  }
  for_parts(*runs, [&](std::int64_t row, std::int64_t first, std::int64_t count) {
    host_functions().bf16.narrow(pointer<Bf16>(out) + row * runs->stride + first,
                                 const_pointer<float>(wide) + row * runs->size + first, count);
  });
}

Tensor narrowed(const Tensor& wide) {
  const Tensor out = at::empty(wide.sizes(), wide.options().dtype(at::kBFloat16));
  narrow_into(out, wide);
  return out;
}

}  // namespace tessera::kernels
