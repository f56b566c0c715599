// SPDX-License-Identifier: Apache-2.0
// Shapes of those operators for which LibTorch has shape functions in Python alone.
#include "shape_operators.hpp"

#include <ATen/ExpandUtils.h>
#include <ATen/ops/result_type.h>
#include <torch/library.h>

#include <memory>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/base/keep.hpp"
#include "tessera/kernels/tensor.hpp"

namespace tessera::kernels {
namespace {

using at::Tensor;

/// Under the operators' own names.
namespace shape_of {

Tensor index_select(const Tensor& x, std::int64_t dim, const Tensor& index) {
  std::vector<std::int64_t> sizes = x.sizes().vec();
  sizes[static_cast<std::size_t>(dim < 0 ? dim + x.dim() : dim)] = index.numel();
  return at::empty(sizes, x.options());
}

Tensor searchsorted(const Tensor&, const Tensor& x, bool narrow, bool,
                    std::optional<std::string_view>, const std::optional<Tensor>&) {
  return at::empty_like(x, x.options().dtype(narrow ? at::kInt : at::kLong));
}

Tensor repeat_interleave(const Tensor& counts, std::optional<c10::SymInt> size) {
  TESSERA_EXPECT(size.has_value(), "the size of repeated values is not known");
  return at::empty({size->expect_int()}, counts.options());
}

Tensor grouped_mm(const Tensor& a, const Tensor& b, const std::optional<Tensor>& ends,
                  const std::optional<Tensor>&, std::optional<at::ScalarType> type) {
  const at::TensorOptions options = a.options().dtype(type.value_or(a.scalar_type()));
  if (a.dim() == 2 && b.dim() == 2)
    return at::empty({ends->size(0), a.size(0), b.size(1)}, options);
  return at::empty({a.size(0), b.size(2)}, options);
}

Tensor scaled_mm(const Tensor& a, const Tensor& b, const Tensor&, const Tensor&,
                 const std::optional<Tensor>&, const std::optional<Tensor>&,
                 std::optional<at::ScalarType> type, bool) {
  return at::empty({a.size(0), b.size(1)}, a.options().dtype(type.value_or(a.scalar_type())));
}

/// As LibTorch's CUDA code allocates; with begins of runs, positions are the first dimension.
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> flash_attention(
    const Tensor& q, const Tensor&, const Tensor&, const std::optional<Tensor>& begins,
    const std::optional<Tensor>&, c10::SymInt, c10::SymInt, double, bool, bool,
    std::optional<double>, std::optional<c10::SymInt>, std::optional<c10::SymInt>,
    const std::optional<Tensor>&, const std::optional<Tensor>&) {
  const at::TensorOptions logarithm = q.options().dtype(at::kFloat);
  const Tensor log = begins.has_value() ? at::empty({q.size(1), q.size(0)}, logarithm)
                                        : at::empty({q.size(0), q.size(2), q.size(1)}, logarithm);
  const Tensor state = at::empty({0}, q.options().dtype(at::kLong));
  return {at::empty_like(q), log, state, state, state};
}

std::tuple<Tensor, Tensor, Tensor> flash_attention_backward(
    const Tensor&, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor&, const Tensor&,
    const Tensor&, const Tensor&, c10::SymInt, c10::SymInt, double, bool, const Tensor&,
    const Tensor&, std::optional<double>, std::optional<c10::SymInt>, std::optional<c10::SymInt>) {
  return {at::empty_like(q), at::empty_like(k), at::empty_like(v)};
}

Tensor& mm_out(const Tensor&, const Tensor&, at::ScalarType, Tensor& out) { return out; }
Tensor& addmm_out(const Tensor&, const Tensor&, const Tensor&, at::ScalarType, const at::Scalar&,
                  const at::Scalar&, Tensor& out) {
  return out;
}

Tensor isnan(const Tensor& x) { return at::empty_like(x, x.options().dtype(at::kBool)); }

Tensor& logical_of_two(const Tensor& a, const Tensor& b, Tensor& out) {
  out.resize_(at::infer_size(a.sizes(), b.sizes()));
  return out;
}

Tensor& of_each(const Tensor& x, Tensor& out) {
  out.resize_(x.sizes());
  return out;
}

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  return at::empty(at::infer_size(condition.sizes(), at::infer_size(a.sizes(), b.sizes())),
                   at::TensorOptions(at::kMeta).dtype(at::result_type(a, b)));
}

}  // namespace shape_of
}  // namespace

void install_shape_operators() {
  [[maybe_unused]] static const bool installed = [] {
    auto operators = std::make_unique<torch::Library>(torch::Library::IMPL, "aten",
                                                      c10::DispatchKey::Meta, __FILE__, __LINE__);
    operators->impl("abs.out", &shape_of::of_each);
    operators->impl("addmm.dtype_out", &shape_of::addmm_out);
    operators->impl("_flash_attention_backward", &shape_of::flash_attention_backward);
    operators->impl("_flash_attention_forward", &shape_of::flash_attention);
    operators->impl("_grouped_mm", &shape_of::grouped_mm);
    operators->impl("index_select", &shape_of::index_select);
    operators->impl("isnan", &shape_of::isnan);
    operators->impl("logical_and.out", &shape_of::logical_of_two);
    operators->impl("logical_not.out", &shape_of::of_each);
    operators->impl("logical_or.out", &shape_of::logical_of_two);
    operators->impl("mm.dtype_out", &shape_of::mm_out);
    operators->impl("repeat_interleave.Tensor", &shape_of::repeat_interleave);
    operators->impl("_scaled_mm", &shape_of::scaled_mm);
    operators->impl("searchsorted.Tensor", &shape_of::searchsorted);
    operators->impl("where.self", &shape_of::where);
    keep_for_ever(std::move(operators));
    return true;
  }();
}

}  // namespace tessera::kernels
