// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/initial_values.hpp"

#include <ATen/Dispatch.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "host/parallel_for.hpp"
#include "host/row_functions.hpp"
#include "normal.hpp"
#include "tessera/base/error.hpp"

namespace tessera::kernels {
namespace {

/// Rows along the last dim of a box, with the global row-major index of each row's first element.
class BoxRows {
 public:
  BoxRows(const at::Tensor& box, const Shape& global_shape, const Shape& offset)
      : extent_(box.sizes().vec()), global_(global_shape), offset_(offset) {
    if (extent_.empty()) extent_ = global_ = {1}, offset_ = {0};
  }
  std::int64_t width() const { return extent_.back(); }
  std::int64_t count() const { return width() == 0 ? 0 : element_count(extent_) / width(); }
  std::uint64_t first_index(std::int64_t row) const {
    std::uint64_t index = offset_.back(), stride = global_.back();
    for (std::size_t dim = extent_.size() - 1; dim-- > 0;
         row /= extent_[dim], stride *= global_[dim])
      index += stride * static_cast<std::uint64_t>(offset_[dim] + row % extent_[dim]);
    return index;
  }

 private:
  Shape extent_, global_, offset_;
};

void check_box(const at::Tensor& out, const Shape& global_shape, const Shape& offset) {
  TESSERA_EXPECT(out.device().is_cpu() && out.is_contiguous(),
                 "initial values are drawn into contiguous host memory");
  TESSERA_EXPECT(
      global_shape.size() == offset.size() && static_cast<std::size_t>(out.dim()) == offset.size(),
      "a box of {} dims in a tensor of {}", out.dim(), global_shape.size());
  for (std::size_t dim = 0; dim < offset.size(); ++dim)
    TESSERA_EXPECT(offset[dim] >= 0 &&
                       offset[dim] + out.size(static_cast<std::int64_t>(dim)) <= global_shape[dim],
                   "the box leaves the tensor in dim {}", dim);
}

void check_normal(const Normal& n) {
  require(std::isfinite(n.mean) && std::isfinite(n.deviation) && n.deviation > 0 &&
              n.cut_low < n.cut_high,
          ExitCode::usage,
          "no normal distribution has mean {}, deviation {} and cuts [{}, {}]; give a positive "
          "deviation and cuts in order",
          n.mean, n.deviation, n.cut_low, n.cut_high);
}

using DrawNormals = decltype(HostFunctions::draw_normals);

/// Draws row pieces through a buffer of doubles and rounds them into T.
template <class T>
void fill_rows(T* out, const Philox& philox, const BoxRows& rows, std::int64_t begin,
               std::int64_t end, const CutNormal& normal, DrawNormals draw) {
  std::array<double, 512> piece;
  const std::int64_t width = rows.width();
  for (std::int64_t row = begin; row < end; ++row) {
    for (std::int64_t column = 0; column < width; column += std::ssize(piece)) {
      const std::int64_t count = std::min<std::int64_t>(std::ssize(piece), width - column);
      draw(philox, rows.first_index(row) + static_cast<std::uint64_t>(column), count, normal,
           piece.data());
      for (std::int64_t i = 0; i < count; ++i)
        out[row * width + column + i] = static_cast<T>(piece[i]);
    }
  }
}

}  // namespace

void fill_normal(const at::Tensor& out, const Philox& philox, const Shape& global_shape,
                 const Shape& offset, const Normal& normal) {
  check_box(out, global_shape, offset);
  check_normal(normal);
  const BoxRows rows(out, global_shape, offset);
  const CutNormal cut = cut_normal(normal.mean, normal.deviation, normal.cut_low, normal.cut_high);
  require(cut.probability_low < cut.probability_high, ExitCode::usage,
          "the cuts [{}, {}] leave nothing of a normal distribution with mean {} and deviation {}; "
          "widen them",
          normal.cut_low, normal.cut_high, normal.mean, normal.deviation);
  const std::int64_t grain =
      std::max<std::int64_t>(1, 4096 / std::max<std::int64_t>(1, rows.width()));
  const DrawNormals draw = host_functions().draw_normals;
  AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, out.scalar_type(), "fill_normal", [&] {
    parallel_for(0, rows.count(), grain, [&](std::int64_t begin, std::int64_t end) {
      fill_rows(out.mutable_data_ptr<scalar_t>(), philox, rows, begin, end, cut, draw);
    });
  });
}

}  // namespace tessera::kernels
