// SPDX-License-Identifier: Apache-2.0
// Which files hold text, by their names.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tessera::data {

/// In lower case: A.TXT is text, too.
inline std::string extension_of(const std::filesystem::path& path) {
  std::string extension = path.extension().string();
  for (char& letter : extension)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return extension;
}
inline bool is_packed(const std::filesystem::path& path) {
  const std::string extension = extension_of(path);
  return extension == ".gz" || extension == ".zst";
}
/// The name of what is compressed: a.jsonl of a.jsonl.gz.
inline std::filesystem::path unpacked_name(const std::filesystem::path& path) {
  return is_packed(path) ? std::filesystem::path(path).replace_extension() : path;
}
inline bool is_jsonl(const std::filesystem::path& path) {
  const std::string kind = extension_of(unpacked_name(path));
  return kind == ".jsonl" || kind == ".json";
}
inline bool is_text_file(const std::filesystem::path& path) {
  return is_jsonl(path) || extension_of(unpacked_name(path)) == ".txt";
}

/// What a folder of data holds, without hidden entries.
struct FolderEntries {
  std::vector<std::filesystem::path> files;   ///< regular ones, also behind links; sorted
  std::vector<std::filesystem::path> others;  ///< folders and devices
};
/// Throws Error(data) if the folder cannot be listed, or has a link to a file that is not there.
FolderEntries entries_of(const std::filesystem::path& folder);

/// Throws Error(data) if a file is next to its compressed copy: the text would be read twice.
/// `files` of one folder.
void refuse_copies(const std::vector<std::filesystem::path>& files);

}  // namespace tessera::data
