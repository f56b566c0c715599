// SPDX-License-Identifier: Apache-2.0
// The tensors of Hugging Face files as a model has them: quantized ones are decoded while they are
// read.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tessera/hf/safetensors.hpp"

namespace tessera::hf {

/// In addition to plain tensors it knows, by the tensors that are next to them,
///   FP8:   NAME (E4M3) times NAME_scale_inv, one for each block of 128 x 128 (DeepSeek-V3);
///   MXFP4: NAME_blocks [n, rows, columns / 32, 16] (two E2M1 values a byte, the low one first)
///   times
///          2^(NAME_scales - 127), one for each block of 32, whose rows and columns change places
///          (gpt-oss).
/// Both say that they are bfloat16 and are decoded in float32, a few MiB at a time.
class WeightFiles {
 public:
  /// As SafetensorsReader. Throws Error(data) for scales of a shape that does not go with their
  /// tensor.
  explicit WeightFiles(const std::filesystem::path& file_or_folder);

  /// The tensor as it is read; null when there is none of that name.
  const TensorInfo* find(const std::string& name) const;
  /// As SafetensorsReader::read.
  void read(const TensorSlice& slice, void* out) const;

  /// The file or folder.
  const std::filesystem::path& path() const { return path_; }
  /// As they are in the files.
  const std::vector<TensorInfo>& stored() const { return reader_.tensors(); }
  /// Those of which a tensor is made.
  std::vector<std::string> stored_names(const std::string& name) const;

 private:
  struct Quantized {
    TensorInfo entry;            ///< what it is decoded to
    std::string values, scales;  ///< stored tensors
    bool mxfp4 = false;
  };
  void add_fp8(const TensorInfo& scales);
  void add_mxfp4(const TensorInfo& blocks);
  void require_scales(bool good, const TensorInfo& values, const TensorInfo& scales) const;
  void decode_fp8(const Quantized& quantized, const TensorSlice& slice, float* out) const;
  void decode_mxfp4(const Quantized& quantized, const TensorSlice& slice, float* out) const;

  std::filesystem::path path_;
  SafetensorsReader reader_;
  std::map<std::string, Quantized> quantized_;
};

}  // namespace tessera::hf
