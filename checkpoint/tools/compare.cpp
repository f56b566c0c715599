// SPDX-License-Identifier: Apache-2.0
#include "tessera/checkpoint/compare.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <vector>

#include "format/tensor_table.hpp"
#include "tessera/base/convert.hpp"

namespace tessera::checkpoint {
namespace {

constexpr std::size_t kComparedBytes = std::size_t{16} << 20;

/// Part of a tensor, and its values as numbers where its type has any.
struct Chunk {
  std::vector<std::byte> bytes;
  std::vector<double> values;
};

class TensorReader {
 public:
  TensorReader(const CheckpointReader& from, const TensorInfo& tensor)
      : from_(from), tensor_(tensor) {}
  /// Rows [first, first + rows) of `count` elements.
  const Chunk& read(std::int64_t first, std::int64_t rows, std::int64_t count) {
    TensorSlice slice{tensor_.name, tensor_.dtype, tensor_.shape, whole(tensor_.shape)};
    if (!tensor_.shape.empty()) slice.box.offset[0] = first, slice.box.extent[0] = rows;
    chunk_.bytes.resize(static_cast<std::size_t>(count) * size_of(tensor_.dtype));
    from_.read(slice, chunk_.bytes.data());
    return chunk_;
  }
  void widen(std::int64_t count) {
    const std::vector<std::byte>& bytes = chunk_.bytes;
    chunk_.values.resize(static_cast<std::size_t>(count));
    if (convertible(tensor_.dtype, DType::f64)) {
      static_cast<void>(
          convert(bytes.data(), tensor_.dtype, chunk_.values.data(), DType::f64, count));
      return;
    }
    std::vector<std::int64_t> whole(static_cast<std::size_t>(count));
    static_cast<void>(convert(bytes.data(), tensor_.dtype, whole.data(), DType::i64, count));
    std::copy(whole.begin(), whole.end(), chunk_.values.begin());
  }

 private:
  const CheckpointReader& from_;
  const TensorInfo& tensor_;
  Chunk chunk_;
};

bool has_values(DType dtype) {
  return convertible(dtype, DType::f64) || convertible(dtype, DType::i64);
}

void measure(double a, double b, TensorComparison& out) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return;
  const double inf = std::numeric_limits<double>::infinity(), difference = std::abs(a - b);
  out.max_abs = std::max(out.max_abs, std::isnan(difference) ? inf : difference);
  const double relative = difference / std::max(std::abs(a), std::abs(b));
  out.max_rel = std::max(out.max_rel, std::isnan(relative) ? inf : relative);
}

void compare_chunk(TensorReader& of_a, const Chunk& a, TensorReader& of_b, const Chunk& b,
                   std::int64_t count, TensorComparison& out) {
  const bool one_type = out.a->dtype == out.b->dtype;
  if (one_type && a.bytes == b.bytes) return;
  const bool measured = has_values(out.a->dtype);
  if (measured) of_a.widen(count), of_b.widen(count);
  const std::size_t width = size_of(out.a->dtype);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const bool same =
        one_type
            ? std::memcmp(a.bytes.data() + i * width, b.bytes.data() + i * width, width) == 0
            : a.values[i] == b.values[i] || (std::isnan(a.values[i]) && std::isnan(b.values[i]));
    if (same) continue;
    ++out.differing;
    if (measured) measure(a.values[i], b.values[i], out);
  }
}

void compare_values(const CheckpointReader& a, const CheckpointReader& b, TensorComparison& out) {
  const Shape& shape = out.a->shape;
  out.compared = shape == out.b->shape && convertible(out.a->dtype, out.b->dtype);
  out.elements = element_count(shape);
  if (!out.compared || out.elements == 0) return;
  TensorReader of_a(a, *out.a), of_b(b, *out.b);
  const std::int64_t rows = shape.empty() ? 1 : shape.front(), row_elements = out.elements / rows;
  const std::int64_t chunk = std::clamp<std::int64_t>(
      static_cast<std::int64_t>(kComparedBytes / sizeof(double)) / row_elements, 1, rows);
  for (std::int64_t first = 0; first < rows; first += chunk) {
    const std::int64_t count = std::min(chunk, rows - first);
    const Chunk& from_a = of_a.read(first, count, count * row_elements);
    const Chunk& from_b = of_b.read(first, count, count * row_elements);
    compare_chunk(of_a, from_a, of_b, from_b, count * row_elements, out);
  }
}

}  // namespace

bool TensorComparison::is_equal() const {
  return compared && a->dtype == b->dtype && differing == 0;
}

void compare(const CheckpointReader& a, const CheckpointReader& b,
             const std::function<void(const TensorComparison&)>& take) {
  std::map<std::string, TensorComparison, NaturalOrder> all;
  for (const TensorInfo& tensor : a.tensors()) all[tensor.name].a = tensor;
  for (const TensorInfo& tensor : b.tensors()) all[tensor.name].b = tensor;
  for (auto& [name, comparison] : all) {
    comparison.name = name;
    if (comparison.a && comparison.b) compare_values(a, b, comparison);
    take(comparison);
  }
}

}  // namespace tessera::checkpoint
