// SPDX-License-Identifier: Apache-2.0
// The header of one .safetensors file: 8 bytes of length, JSON, then the tensors without holes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tessera/base/file.hpp"
#include "tessera/hf/safetensors.hpp"

namespace tessera::hf {

struct PlacedEntry {
  TensorInfo entry;
  std::int64_t begin = 0;  ///< byte in the file
  std::int64_t bytes = 0;
};

struct SafetensorsHeader {
  std::vector<PlacedEntry> entries;
  std::map<std::string, std::string> metadata;
};

/// Reads and checks the header of `file`. Error(data).
SafetensorsHeader read_safetensors_header(const File& file);

/// Places the tensors (widest elements first, then by name: each stays aligned) and gives the
/// header's bytes.
std::string place_safetensors(std::vector<PlacedEntry>& entries,
                              const std::map<std::string, std::string>& metadata);

}  // namespace tessera::hf
