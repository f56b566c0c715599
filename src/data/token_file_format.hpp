// SPDX-License-Identifier: Apache-2.0
// The header of a token file, as it is on disk, and the sizes that follow from it.
#pragma once

#include <bit>
#include <cstdint>
#include <string>

#include "content_hash.hpp"
#include "tessera/data/token_file.hpp"

namespace tessera::data {

static_assert(std::endian::native == std::endian::little,
              "token files are little-endian and mapped as they are");

struct TokenFileHeader {
  static constexpr char kMagic[8] = {'T', 'S', 'R', 'A', 'T', 'O', 'K', 'S'};
  static constexpr std::uint32_t kVersion = 1;

  char magic[8];
  std::uint32_t version;
  std::uint32_t token_bytes;
  std::uint64_t token_count;
  std::uint64_t document_count;
  std::uint64_t vocab_size;
  std::uint64_t seed;
  std::uint64_t tokenizer_hash;
  std::uint64_t source_hash;
  std::int64_t bos_id;  ///< -1: none
  std::int64_t eos_id;
  std::uint64_t payload_hash;  ///< of everything after the header
  std::uint64_t reserved[4];
  std::uint64_t header_hash;  ///< of the bytes before it

  std::uint64_t hash() const {
    return content_hash({reinterpret_cast<const char*>(this), sizeof *this - sizeof header_hash});
  }
  /// Where the index begins: after the ids, at a multiple of 8.
  std::uint64_t index_offset() const {
    return (sizeof *this + token_count * token_bytes + 7) / 8 * 8;
  }
  std::uint64_t file_bytes() const { return index_offset() + (document_count + 1) * 8; }
};
static_assert(sizeof(TokenFileHeader) == 128);

/// Bytes of one id below `vocab_size`.
inline std::uint32_t token_bytes_for(std::int64_t vocab_size) {
  return vocab_size <= 65536 ? 2 : 4;
}

}  // namespace tessera::data
