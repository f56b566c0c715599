// Which files hold text, by their names.
#pragma once

#include <filesystem>

namespace tessera::data {

inline bool is_jsonl(const std::filesystem::path& path) {
  return path.extension() == ".jsonl" || path.extension() == ".json";
}
inline bool is_text_file(const std::filesystem::path& path) { return is_jsonl(path) || path.extension() == ".txt"; }

}  // namespace tessera::data
