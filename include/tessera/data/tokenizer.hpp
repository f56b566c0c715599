// SPDX-License-Identifier: Apache-2.0
// Byte-level BPE that reads Hugging Face `tokenizer.json` (GPT-2, Llama 3 and Qwen families) and
// gives the same ids. Text is a sequence of bytes: bytes that are not UTF-8 are words of one byte
// each, so any text survives encode and decode.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::data {

/// Immutable once loaded; encode and decode may be called from several threads at once.
class Tokenizer {
 public:
  struct Parts;

  /// Reads `tokenizer.json`, or the folder that holds it (and `tokenizer_config.json`, if any, next
  /// to it). Throws Error(data) for a file that is missing, damaged, or asks for something other
  /// than byte-level BPE.
  static Tokenizer load(const std::filesystem::path& file_or_folder);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  /// Ids of `text`. Added tokens inside the text are recognised; no BOS or EOS is added.
  /// Throws Error(data) when a pattern of the file backtracks beyond its limit.
  std::vector<std::int32_t> encode(std::string_view text) const;

  /// Bytes of `ids`, with special tokens as their text, or omitted with `skip_special`. A token
  /// that ends inside a UTF-8 character gives exactly its bytes. Throws Error(data) for an id that
  /// is not in the vocabulary.
  std::string decode(std::span<const std::int32_t> ids, bool skip_special = false) const;
  /// False for ids beyond the vocabulary, and for those in it that no token has.
  bool has(std::int32_t id) const;

  /// Largest id + 1: the rows that an embedding needs.
  int vocab_size() const;
  /// From tokenizer_config.json, else from the post-processor's template, else by the usual names.
  std::optional<int> bos_id() const;
  std::optional<int> eos_id() const;
  /// Id of a token by its text ("<|end_of_text|>"), in the spelling of the file.
  std::optional<int> id_of(std::string_view token) const;
  /// 64-bit hash of what tokenizer.json says, blanks and order of members aside; token files record
  /// it.
  std::uint64_t content_hash() const;

  /// Words of the text before merging, in the byte-level alphabet; special tokens are not looked
  /// for.
  std::vector<std::string> pre_tokens(std::string_view text) const;

 private:
  explicit Tokenizer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

/// The file of a tokenizer that is named by it or by its folder; it need not be there.
std::filesystem::path tokenizer_file(const std::filesystem::path& file_or_folder);

}  // namespace tessera::data
