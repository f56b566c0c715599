// SPDX-License-Identifier: Apache-2.0
#include "tessera/hf/weight_files.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tessera/base/box.hpp"
#include "tessera/base/convert.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/base/json_reader.hpp"
#include "tessera/base/shard.hpp"
#include "tessera/hf/folder.hpp"

namespace tessera::hf {
namespace {

constexpr std::int64_t kFp8Block = 128, kMxfp4Block = 32, kMxfp4Bytes = kMxfp4Block / 2;
constexpr std::int64_t kDecodedElements = std::int64_t{4} << 20;  // at a time
constexpr std::int64_t kMostConfigBytes = std::int64_t{1} << 20;
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

/// The blocks that contain [first, first + count).
Range touched(std::int64_t first, std::int64_t count, std::int64_t block) {
  return {first / block, blocks_of(first + count, block) - first / block};
}

template <class T>
std::vector<T> values_of(const SafetensorsReader& reader, const TensorSlice& slice) {
  std::vector<T> values(static_cast<std::size_t>(element_count(slice.box)));
  reader.read(slice, values.data());
  return values;
}

/// The config.json beside the weights, if there is one, may name other blocks, of which there can
/// be as many.
void require_fp8_blocks(const std::filesystem::path& weights) {
  const TextSource source{config_beside(weights), ExitCode::data};
  if (std::error_code ignored; !std::filesystem::exists(source.path, ignored)) return;
  const nlohmann::json parsed =
      parse_json(read_text(source.path, kMostConfigBytes, ExitCode::data), source);
  const JsonNode how = JsonNode(parsed, source)["quantization_config"];
  if (how.is_null() || how["weight_block_size"].is_null()) return;
  const JsonNode size = how["weight_block_size"];
  for (std::size_t i = 0; i < size.size(); ++i)
    if (size[i].count() != kFp8Block)
      size.refuse(
          fmt::format("FP8 weights in other blocks than {0} x {0} are not supported", kFp8Block));
}

/// NAME of NAME + suffix; "" when the name ends in another way.
std::string stem(const std::string& name, std::string_view suffix) {
  return name.ends_with(suffix) ? name.substr(0, name.size() - suffix.size()) : "";
}

}  // namespace

WeightFiles::WeightFiles(const std::filesystem::path& file_or_folder)
    : path_(file_or_folder), reader_(file_or_folder) {
  for (const TensorInfo& tensor : reader_.tensors()) {
    if (tensor.name.ends_with("_scale_inv")) add_fp8(tensor);
    if (tensor.name.ends_with("_blocks")) add_mxfp4(tensor);
  }
  const bool fp8 =
      std::ranges::any_of(quantized_, [](const auto& named) { return !named.second.mxfp4; });
  if (fp8) require_fp8_blocks(path_);
}

void WeightFiles::require_scales(bool good, const TensorInfo& values,
                                 const TensorInfo& scales) const {
  require(good, ExitCode::data, "{}: the scales {} {} do not fit {} {}", path_.string(),
          scales.name, to_string(scales.shape), values.name, to_string(values.shape));
}

void WeightFiles::add_fp8(const TensorInfo& scales) {
  const TensorInfo* values = reader_.find(stem(scales.name, "_scale_inv"));
  if (!values || values->dtype != DType::f8e4m3) return;
  Shape blocks;
  for (const std::int64_t n : values->shape) blocks.push_back(blocks_of(n, kFp8Block));
  require_scales(blocks.size() == 2 && scales.shape == blocks, *values, scales);
  quantized_[values->name] = {
      {values->name, DType::bf16, values->shape}, values->name, scales.name};
}

void WeightFiles::add_mxfp4(const TensorInfo& blocks) {
  const std::string name = stem(blocks.name, "_blocks");
  const TensorInfo* scales = reader_.find(name + "_scales");
  if (!scales || blocks.dtype != DType::u8) return;
  const Shape& shape = blocks.shape;
  require_scales(shape.size() == 4 && shape[3] == kMxfp4Bytes && scales->dtype == DType::u8 &&
                     scales->shape == Shape(shape.begin(), shape.end() - 1),
                 blocks, *scales);
  quantized_[name] = {{name, DType::bf16, {shape[0], shape[2] * kMxfp4Block, shape[1]}},
                      blocks.name,
                      scales->name,
                      true};
}

const TensorInfo* WeightFiles::find(const std::string& name) const {
  const auto at = quantized_.find(name);
  return at == quantized_.end() ? reader_.find(name) : &at->second.entry;
}

std::vector<std::string> WeightFiles::stored_names(const std::string& name) const {
  const auto at = quantized_.find(name);
  if (at == quantized_.end()) return {name};
  return {at->second.values, at->second.scales};
}

void WeightFiles::read(const TensorSlice& slice, void* out) const {
  const auto at = quantized_.find(slice.name);
  if (at == quantized_.end()) return reader_.read(slice, out);
  TESSERA_EXPECT(slice.global_shape == at->second.entry.shape, "{}", slice.name);
  if (element_count(slice.box) == 0) return;
  const std::int64_t row_elements = element_count(slice.box) / slice.box.extent[0];
  const std::int64_t rows = std::max<std::int64_t>(1, kDecodedElements / row_elements);
  std::vector<float> decoded;
  auto* to = static_cast<std::byte*>(out);
  for (std::int64_t row = 0; row < slice.box.extent[0]; row += rows) {
    TensorSlice part = slice;
    part.box.offset[0] += row;
    part.box.extent[0] = std::min(rows, slice.box.extent[0] - row);
    decoded.resize(static_cast<std::size_t>(element_count(part.box)));
    if (at->second.mxfp4)
      decode_mxfp4(at->second, part, decoded.data());
    else
      decode_fp8(at->second, part, decoded.data());
    const auto count = static_cast<std::int64_t>(decoded.size());
    require(convert(decoded.data(), DType::f32, to, slice.dtype, count), ExitCode::data,
            "{}: {} cannot be read as {}", path_.string(), slice.name, name_of(slice.dtype));
    to += decoded.size() * size_of(slice.dtype);
  }
}

void WeightFiles::decode_fp8(const Quantized& quantized, const TensorSlice& slice,
                             float* out) const {
  TensorSlice stored = slice;
  stored.dtype = DType::f8e4m3;
  const auto values = values_of<std::uint8_t>(reader_, stored);
  const auto& [offset, extent] = slice.box;
  const Range rows = touched(offset[0], extent[0], kFp8Block),
              columns = touched(offset[1], extent[1], kFp8Block);
  const auto scales =
      values_of<float>(reader_, {quantized.scales,
                                 DType::f32,
                                 reader_.find(quantized.scales)->shape,
                                 {{rows.begin, columns.begin}, {rows.size, columns.size}}});
  const auto& table = e4m3_values();
  std::size_t i = 0;
  for (std::int64_t row = offset[0]; row < offset[0] + extent[0]; ++row)
    for (std::int64_t column = offset[1]; column < offset[1] + extent[1]; ++column, ++i) {
      const std::int64_t scale =
          (row / kFp8Block - rows.begin) * columns.size + column / kFp8Block - columns.begin;
      out[i] = table[values[i]] * scales[static_cast<std::size_t>(scale)];
    }
}

/// Columns of the box are rows of the stored tensor, and the other way round.
void WeightFiles::decode_mxfp4(const Quantized& quantized, const TensorSlice& slice,
                               float* out) const {
  const auto& [offset, extent] = slice.box;
  const Range blocks = touched(offset[1], extent[1], kMxfp4Block);
  const Shape& shape = reader_.find(quantized.values)->shape;
  const Box of_blocks{{offset[0], offset[2], blocks.begin}, {extent[0], extent[2], blocks.size}};
  Box of_bytes = of_blocks;
  of_bytes.offset.push_back(0);
  of_bytes.extent.push_back(kMxfp4Bytes);
  const auto values =
      values_of<std::uint8_t>(reader_, {quantized.values, DType::u8, shape, of_bytes});
  const auto scales = values_of<std::uint8_t>(
      reader_, {quantized.scales, DType::u8, Shape(shape.begin(), shape.end() - 1), of_blocks});
  const auto& powers = e8m0_values();
  const std::int64_t begin = offset[1] - blocks.begin * kMxfp4Block;
  for (std::int64_t e = 0; e < extent[0]; ++e)
    for (std::int64_t column = 0; column < extent[1]; ++column)
      for (std::int64_t row = 0; row < extent[2]; ++row) {
        const std::int64_t block =
            (e * extent[2] + row) * blocks.size + (begin + column) / kMxfp4Block;
        const std::int64_t within = (begin + column) % kMxfp4Block;
        const unsigned byte = values[static_cast<std::size_t>(block * kMxfp4Bytes + within / 2)];
        *out++ = e2m1(within % 2 ? byte >> 4 : byte & 15) *
                 powers[scales[static_cast<std::size_t>(block)]];
      }
}

}  // namespace tessera::hf
