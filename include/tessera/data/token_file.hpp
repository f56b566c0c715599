// SPDX-License-Identifier: Apache-2.0
// Token files: documents as one run of token ids with an index, mapped into memory. Little-endian:
//   header (128 bytes) | ids, u16 or u32 | padding to 8 | document starts, u64 x (documents + 1)
// The header names counts, vocabulary, tokenizer and seed, and ends with a hash of itself; the
// file's size follows from it, so that truncation shows at once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "tessera/base/file.hpp"
#include "tessera/base/shard.hpp"
#include "tessera/data/progress.hpp"

namespace tessera::data {

/// The description in a token file.
struct TokenFileInfo {
  std::int64_t token_count = 0;
  std::int64_t document_count = 0;
  std::int64_t vocab_size = 0;  ///< every id is below it
  std::optional<int> bos_id;
  std::optional<int> eos_id;
  std::uint64_t seed = 0;            ///< of the shuffle of documents
  std::uint64_t tokenizer_hash = 0;  ///< Tokenizer::content_hash
  std::uint64_t source_hash = 0;     ///< TextCorpus::content_hash
  std::uint64_t payload_hash = 0;    ///< of ids and index, as the header has it
  int token_bytes = 2;               ///< 2 when vocab_size <= 65,536, else 4
};

/// Read-only view of a token file; cheap to copy, thread-safe.
class TokenFile {
 public:
  /// Throws Error(data) for a file that is missing, no token file, of another version, truncated or
  /// damaged in its header.
  static TokenFile open(const std::filesystem::path& path);
  /// Whether the file begins as a token file does; false for a missing or short one. Throws
  /// Error for one that cannot be read.
  static bool is_token_file(const std::filesystem::path& path);

  const TokenFileInfo& info() const;
  const std::filesystem::path& path() const;
  /// Copies tokens [begin, begin + out.size()). Throws Error(data) for an id that is not below
  /// vocab_size.
  void read(std::int64_t begin, std::span<std::int32_t> out) const;
  /// Tokens of document `document`, BOS and EOS included.
  Range document(std::int64_t document) const;
  /// Document that holds token `token`, by binary search in the index.
  std::int64_t document_of(std::int64_t token) const;
  /// Reads everything: hash of ids and index, ids below vocab_size, index ascending. Throws
  /// Error(data) with what is wrong.
  void verify(const Progress& progress = {}) const;

 private:
  struct Parts;
  explicit TokenFile(std::shared_ptr<const Parts> parts);
  std::shared_ptr<const Parts> parts_;
};

/// Writes a token file aside and renames it into place in finish(); without finish() nothing is
/// left behind.
class TokenFileWriter {
 public:
  /// `info` without counts, payload_hash and token_bytes. Throws Error(environment) when the file
  /// cannot be made.
  TokenFileWriter(std::filesystem::path path, const TokenFileInfo& info,
                  const FileErrors& errors = ExitCode::environment);
  TokenFileWriter(TokenFileWriter&&) noexcept;
  ~TokenFileWriter();
  /// Appends one document; ids must be below vocab_size. It may have none.
  void append_document(std::span<const std::int32_t> ids);
  /// Of the documents so far.
  std::int64_t token_count() const;
  TokenFileInfo finish();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace tessera::data
