// SPDX-License-Identifier: Apache-2.0
#include "hf_source.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include "tessera/kernels/tensor.hpp"

#include <array>
#include <cmath>

#include "tessera/base/error.hpp"
#include "tessera/base/shard.hpp"
#include "tessera/parallel/tensor_buffer.hpp"

namespace tessera::train {
namespace {

using checkpoint::SafetensorsEntry;

constexpr std::int64_t kFp8Block = 128, kMxfp4Block = 32, kMxfp4Bytes = kMxfp4Block / 2;
constexpr std::int64_t kDecodedElements = std::int64_t{4} << 20;  // at a time
constexpr std::array<float, 8> kE2m1{0, 0.5f, 1, 1.5f, 2, 3, 4, 6};

float e4m3(unsigned bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  if (exponent == 15 && mantissa == 7) return NAN;
  const float size = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                   : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return bits & 128 ? -size : size;
}

const std::array<float, 256>& e4m3_values() {
  static const auto values = [] {
    std::array<float, 256> table;
    for (unsigned bits = 0; bits < table.size(); ++bits) table[bits] = e4m3(bits);
    return table;
  }();
  return values;
}

const std::array<float, 256>& e8m0_values() {
  static const auto values = [] {
    std::array<float, 256> table;
    for (int bits = 0; bits < 256; ++bits)
      table[static_cast<std::size_t>(bits)] = std::ldexp(1.0f, bits - 127);
    return table;
  }();
  return values;
}

float e2m1(unsigned bits) { return bits & 8 ? -kE2m1[bits & 7] : kE2m1[bits]; }

std::int64_t blocks_of(std::int64_t elements, std::int64_t block) {
  return (elements + block - 1) / block;
}

/// The blocks in which [first, first + count) lies.
Range touched(std::int64_t first, std::int64_t count, std::int64_t block) {
  return {first / block, blocks_of(first + count, block) - first / block};
}

template <class T>
std::vector<T> values_of(const checkpoint::SafetensorsReader& reader, const TensorSlice& box) {
  std::vector<T> values(static_cast<std::size_t>(element_count(box.extent)));
  reader.read(box, values.data());
  return values;
}

/// NAME of NAME + suffix; "" when the name ends in another way.
std::string stem(const std::string& name, std::string_view suffix) {
  return name.ends_with(suffix) ? name.substr(0, name.size() - suffix.size()) : "";
}

void require_scales(bool good, const std::string& path, const SafetensorsEntry& values,
                    const SafetensorsEntry& scales) {
  require(good, ExitCode::data, "{}: the scales {} [{}] do not fit {} [{}]", path, scales.name,
          fmt::join(scales.shape, ", "), values.name, fmt::join(values.shape, ", "));
}

}  // namespace

HfSource::HfSource(const std::filesystem::path& file_or_folder) : reader_(file_or_folder) {
  for (const SafetensorsEntry& entry : reader_.tensors()) {
    if (entry.name.ends_with("_scale_inv")) add_fp8(entry, file_or_folder.string());
    if (entry.name.ends_with("_blocks")) add_mxfp4(entry, file_or_folder.string());
  }
}

void HfSource::add_fp8(const SafetensorsEntry& scales, const std::string& path) {
  const SafetensorsEntry* values = reader_.find(stem(scales.name, "_scale_inv"));
  if (!values || values->dtype != DType::f8e4m3) return;
  Shape blocks;
  for (const std::int64_t n : values->shape) blocks.push_back(blocks_of(n, kFp8Block));
  require_scales(blocks.size() == 2 && scales.shape == blocks, path, *values, scales);
  quantized_[values->name] = {
      {values->name, DType::bf16, values->shape}, values->name, scales.name};
}

void HfSource::add_mxfp4(const SafetensorsEntry& blocks, const std::string& path) {
  const std::string name = stem(blocks.name, "_blocks");
  const SafetensorsEntry* scales = reader_.find(name + "_scales");
  if (!scales || blocks.dtype != DType::u8) return;
  const Shape& shape = blocks.shape;
  require_scales(shape.size() == 4 && shape[3] == kMxfp4Bytes && scales->dtype == DType::u8 &&
                     scales->shape == Shape(shape.begin(), shape.end() - 1),
                 path, blocks, *scales);
  quantized_[name] = {{name, DType::bf16, {shape[0], shape[2] * kMxfp4Block, shape[1]}},
                      blocks.name,
                      scales->name,
                      true};
}

const SafetensorsEntry* HfSource::find(const std::string& name) const {
  const auto at = quantized_.find(name);
  return at == quantized_.end() ? reader_.find(name) : &at->second.entry;
}

std::vector<std::string> HfSource::stored_names(const std::string& name) const {
  const auto at = quantized_.find(name);
  if (at == quantized_.end()) return {name};
  return {at->second.values, at->second.scales};
}

void HfSource::read(const TensorSlice& box, void* out) const {
  const auto at = quantized_.find(box.name);
  if (at == quantized_.end()) return reader_.read(box, out);
  TESSERA_EXPECT(box.global_shape == at->second.entry.shape, "{}", box.name);
  if (element_count(box.extent) == 0) return;
  const at::Tensor target = at::from_blob(out, box.extent, parallel::scalar_type_of(box.dtype));
  const std::int64_t rows =
      std::max<std::int64_t>(1, kDecodedElements / (element_count(box.extent) / box.extent[0]));
  for (std::int64_t row = 0; row < box.extent[0]; row += rows) {
    TensorSlice part = box;
    part.offset[0] += row;
    part.extent[0] = std::min(rows, box.extent[0] - row);
    const at::Tensor decoded = at::empty(part.extent, at::kFloat);
    if (at->second.mxfp4)
      decode_mxfp4(at->second, part, decoded.data_ptr<float>());
    else
      decode_fp8(at->second, part, decoded.data_ptr<float>());
    target.narrow(0, row, part.extent[0]).copy_(decoded);
  }
}

void HfSource::decode_fp8(const Quantized& quantized, const TensorSlice& box, float* out) const {
  TensorSlice stored = box;
  stored.dtype = DType::f8e4m3;
  const auto values = values_of<std::uint8_t>(reader_, stored);
  const Range rows = touched(box.offset[0], box.extent[0], kFp8Block),
              columns = touched(box.offset[1], box.extent[1], kFp8Block);
  const auto scales = values_of<float>(reader_, {quantized.scales,
                                                 DType::f32,
                                                 reader_.find(quantized.scales)->shape,
                                                 {rows.begin, columns.begin},
                                                 {rows.size, columns.size}});
  const auto& table = e4m3_values();
  std::size_t i = 0;
  for (std::int64_t row = box.offset[0]; row < box.offset[0] + box.extent[0]; ++row)
    for (std::int64_t column = box.offset[1]; column < box.offset[1] + box.extent[1];
         ++column, ++i) {
      const std::int64_t scale =
          (row / kFp8Block - rows.begin) * columns.size + column / kFp8Block - columns.begin;
      out[i] = table[values[i]] * scales[static_cast<std::size_t>(scale)];
    }
}

/// Columns of the box are rows of the stored tensor, and the other way round.
void HfSource::decode_mxfp4(const Quantized& quantized, const TensorSlice& box, float* out) const {
  const Range blocks = touched(box.offset[1], box.extent[1], kMxfp4Block);
  const Shape& shape = reader_.find(quantized.values)->shape;
  const TensorSlice stored{quantized.values,
                           DType::u8,
                           shape,
                           {box.offset[0], box.offset[2], blocks.begin, 0},
                           {box.extent[0], box.extent[2], blocks.size, kMxfp4Bytes}};
  TensorSlice of_scales{quantized.scales, DType::u8, Shape(shape.begin(), shape.end() - 1),
                        Shape(stored.offset.begin(), stored.offset.end() - 1),
                        Shape(stored.extent.begin(), stored.extent.end() - 1)};
  const auto values = values_of<std::uint8_t>(reader_, stored),
             scales = values_of<std::uint8_t>(reader_, of_scales);
  const auto& powers = e8m0_values();
  const std::int64_t begin = box.offset[1] - blocks.begin * kMxfp4Block;
  for (std::int64_t e = 0; e < box.extent[0]; ++e)
    for (std::int64_t column = 0; column < box.extent[1]; ++column)
      for (std::int64_t row = 0; row < box.extent[2]; ++row) {
        const std::int64_t block =
            (e * box.extent[2] + row) * blocks.size + (begin + column) / kMxfp4Block;
        const std::int64_t within = (begin + column) % kMxfp4Block;
        const unsigned byte = values[static_cast<std::size_t>(block * kMxfp4Bytes + within / 2)];
        *out++ = e2m1(within % 2 ? byte >> 4 : byte & 15) *
                 powers[scales[static_cast<std::size_t>(block)]];
      }
}

}  // namespace tessera::train
