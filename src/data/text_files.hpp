// SPDX-License-Identifier: Apache-2.0
// Which files hold text, by their names.
#pragma once

#include <filesystem>
#include <vector>

namespace tessera::data {

inline bool is_packed(const std::filesystem::path& path) {
  return path.extension() == ".gz" || path.extension() == ".zst";
}
/// The name of what is compressed: a.jsonl of a.jsonl.gz.
inline std::filesystem::path unpacked_name(const std::filesystem::path& path) {
  return is_packed(path) ? std::filesystem::path(path).replace_extension() : path;
}
inline bool is_jsonl(const std::filesystem::path& path) {
  const auto kind = unpacked_name(path).extension();
  return kind == ".jsonl" || kind == ".json";
}
inline bool is_text_file(const std::filesystem::path& path) {
  return is_jsonl(path) || unpacked_name(path).extension() == ".txt";
}

/// Throws Error(data) if a file is next to its compressed copy: the text would be read twice.
/// `files` of one folder.
void refuse_copies(const std::vector<std::filesystem::path>& files);

}  // namespace tessera::data
