// SPDX-License-Identifier: Apache-2.0
// Hugging Face safetensors: reading boxes from a file or a sharded folder, writing a file in any
// order. Format: https://github.com/huggingface/safetensors#format
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/tensor_slice.hpp"

namespace tessera::hf {

/// Reads one .safetensors file, or a Hugging Face folder (model.safetensors, or
/// model.safetensors.index.json and its shards). Headers are read and checked in the constructor:
/// length, JSON, names, dtypes, shapes, offsets that leave the file, overlap or leave holes.
/// Everything wrong is an Error(data) that names the file.
class SafetensorsReader {
 public:
  explicit SafetensorsReader(const std::filesystem::path& file_or_folder);
  ~SafetensorsReader();
  SafetensorsReader(SafetensorsReader&&) noexcept;
  SafetensorsReader& operator=(SafetensorsReader&&) noexcept;

  const std::vector<TensorInfo>& tensors() const;  ///< sorted by name; type BOOL is u8
  const TensorInfo* find(std::string_view name) const;
  const std::map<std::string, std::string>& metadata() const;  ///< "__metadata__" of all files

  /// Fills `out` (contiguous, row-major, box.dtype) with the box. box.global_shape must be the
  /// stored shape. Floating types convert into each other, integer types into each other; a value
  /// that does not fit is an Error(data).
  void read(const TensorSlice& slice, void* out) const;
  /// The whole tensor as `dtype`; `out` holds element_count(shape) elements.
  void read_whole(std::string_view name, DType dtype, void* out) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Writes one .safetensors file whose tensors are known beforehand; the data may come in any order
/// and from any thread. The file has a temporary name in the same folder until finish(); without
/// finish() it is removed.
class SafetensorsWriter {
 public:
  SafetensorsWriter(const std::filesystem::path& file, std::vector<TensorInfo> tensors,
                    const std::map<std::string, std::string>& metadata = {{"format", "pt"}});
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  /// Elements [first, first + count) of the flattened tensor, already of the tensor's dtype.
  void write(std::string_view name, std::int64_t first, std::int64_t count, const void* data);
  /// fsync, rename, fsync of the folder. Error(data) when fewer or more elements were written than
  /// the tensors have.
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera::hf
