// SPDX-License-Identifier: Apache-2.0
// One random damage to a checkpoint, and what must be said of it.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace tessera::checkpoint {

/// How many: TESSERA_DAMAGE_TRIALS, else as usual.
inline int trials(int usual) {
  const char* text = std::getenv("TESSERA_DAMAGE_TRIALS");
  return text == nullptr ? usual : std::atoi(text);
}

/// Bytes of a shard that a loader of everything reads, and the words that its message must have
/// when they are wrong.
struct Read {
  std::int64_t begin, end;
  std::string words;
};

/// One damaged state of the folder.
struct Trial {
  std::string what;
  std::vector<std::filesystem::path> touched;
  bool stops_loader = false;  ///< of the touched steps
  std::string words;          ///< that the loader's message must have
};

}  // namespace tessera::checkpoint
