// SPDX-License-Identifier: Apache-2.0
// Documents in plain text and JSONL files: where each one is, and its text on demand.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace tessera::data {

/// How a plain text file is cut into documents.
enum class DocumentRule {
  file,        ///< the whole file
  lines,       ///< each line that is not blank
  paragraphs,  ///< runs of lines between blank lines
  chapters,    ///< headings like "Genesis 1" or "1 Kings 22": split_regex and unwrap with fitting
               ///< values
};

struct CorpusOptions {
  DocumentRule documents = DocumentRule::file;
  /// A line that matches begins a document and belongs to it (PCRE2, UTF); replaces `documents`
  /// when not empty.
  std::string split_regex = "";
  /// Undoes hard wrapping: an unindented line continues the line above it; indentation and blank
  /// lines go.
  bool unwrap = false;
  /// Member of each JSON object that holds the text; files that end in .jsonl or .json are JSONL,
  /// and those with .gz or .zst after it.
  std::string jsonl_key = "text";
  /// Where compressed files (.gz, .zst) are unpacked while they are read; empty: the system's
  /// folder for temporary files.
  std::filesystem::path scratch = {};
  /// Of each file, only the lines that end in its first bytes; 0: all.
  std::int64_t first_bytes = 0;
};

/// DocumentRule from its name; throws Error(usage) with the names.
DocumentRule document_rule_from_name(const std::string& name);

/// Files mapped into memory, compressed ones from a copy on disk, and an index of their documents
/// (24 bytes each). Reading is thread-safe.
class TextCorpus {
 public:
  /// Throws Error(data) for a file that cannot be read, Error(usage) for a bad regex.
  TextCorpus(const std::vector<std::filesystem::path>& files, CorpusOptions options);
  TextCorpus(TextCorpus&&) noexcept;
  ~TextCorpus();

  std::int64_t document_count() const;
  /// Whether any file is of that kind.
  bool has_jsonl() const;
  bool has_plain_text() const;
  /// False where first_bytes left something out.
  bool whole() const;
  /// For messages: "'a.txt'", "'a.txt' and 2 more files".
  std::string name() const;
  /// Bytes of the document in its file: a measure of work.
  std::int64_t document_bytes(std::int64_t document) const;
  /// Sum of document_bytes.
  std::int64_t total_bytes() const;
  /// Text of one document. JSONL that does not hold a string under the key throws Error(data) with
  /// file:line.
  std::string text(std::int64_t document) const;
  /// 64-bit hash over the content of all files and the options.
  std::uint64_t content_hash() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace tessera::data
