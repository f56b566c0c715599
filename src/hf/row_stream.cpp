// SPDX-License-Identifier: Apache-2.0
#include "row_stream.hpp"

#include <algorithm>
#include <vector>

#include "tessera/base/error.hpp"

namespace tessera::hf {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{64} << 20;

/// Writes rows [first, first + rows) where `row_map` sends them, one write for rows that stay
/// neighbours.
void write_rows(const StreamedTensor& tensor, std::int64_t row_elements, std::int64_t first,
                std::int64_t rows, const std::byte* data, SafetensorsWriter& writer) {
  const auto target = [&](std::int64_t row) { return tensor.row_map ? tensor.row_map(row) : row; };
  const auto row_bytes = row_elements * static_cast<std::int64_t>(size_of(tensor.dtype));
  for (std::int64_t row = 0; row < rows;) {
    const std::int64_t to = target(first + row);
    std::int64_t run = 1;
    while (row + run < rows && target(first + row + run) == to + run) ++run;
    writer.write(tensor.target, to * row_elements, run * row_elements, data + row * row_bytes);
    row += run;
  }
}

}  // namespace

const TensorInfo& find_source(const checkpoint::WeightSource& source, std::string_view name) {
  const TensorInfo* tensor = source.find(name);
  require(tensor != nullptr, ExitCode::checkpoint, "{} holds no tensor {}", source.description(),
          name);
  return *tensor;
}

void for_each_row_chunk(const checkpoint::WeightSource& source, std::string_view name, DType dtype,
                        std::size_t chunk_bytes,
                        const std::function<void(std::int64_t, std::int64_t, const void*)>& take) {
  const TensorInfo& tensor = find_source(source, name);
  const std::int64_t rows = tensor.shape.empty() ? 1 : tensor.shape.front();
  if (element_count(tensor.shape) == 0) return;
  const std::int64_t row_bytes =
      element_count(tensor.shape) / rows * static_cast<std::int64_t>(size_of(dtype));
  const std::int64_t chunk =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(chunk_bytes) / row_bytes, 1, rows);
  std::vector<std::byte> data(static_cast<std::size_t>(chunk * row_bytes));
  TensorSlice slice{tensor.name, dtype, tensor.shape, whole(tensor.shape)};
  for (std::int64_t first = 0; first < rows; first += chunk) {
    const std::int64_t count = std::min(chunk, rows - first);
    if (!tensor.shape.empty()) slice.box.offset[0] = first, slice.box.extent[0] = count;
    source.read(slice, data.data());
    take(first, count, data.data());
  }
}

void stream(const checkpoint::WeightSource& source, const StreamedTensor& tensor,
            SafetensorsWriter& writer) {
  const Shape& shape = find_source(source, tensor.source).shape;
  const std::int64_t row_elements =
      shape.empty() ? 1 : element_count({shape.begin() + 1, shape.end()});
  for_each_row_chunk(source, tensor.source, tensor.dtype, kChunkBytes,
                     [&](std::int64_t first, std::int64_t rows, const void* data) {
                       write_rows(tensor, row_elements, first, rows,
                                  static_cast<const std::byte*>(data), writer);
                     });
}

}  // namespace tessera::hf
