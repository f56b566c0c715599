// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/out_of_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <mutex>
#include <new>
#include <string_view>
#include <utility>

namespace tessera {
namespace {

/// "61.0 GiB" of "... you tried to allocate 65536000000 bytes. Error code 12 ...", as LibTorch says
/// it on the host.
std::string bytes_wanted(std::string_view text) {
  constexpr std::string_view before = "tried to allocate ", behind = " bytes";
  const std::size_t at = text.find(before);
  if (at == text.npos) return {};
  double bytes = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + at + before.size(), end, bytes);
  if (error != std::errc{} || !std::string_view(rest, end).starts_with(behind)) return {};
  constexpr double mebi = 1 << 20, gibi = 1 << 30;
  return bytes >= gibi ? fmt::format("{:.1f} GiB", bytes / gibi)
                       : fmt::format("{:.1f} MiB", bytes / mebi);
}

struct KeptAdvice {
  std::mutex mutex;
  std::string text;
};

KeptAdvice& kept_advice() {
  static auto* const instance = new KeptAdvice;  // the watchdog may ask while the process ends
  return *instance;
}

}  // namespace

void keep_memory_advice(std::string advice) {
  const std::lock_guard lock(kept_advice().mutex);
  kept_advice().text = std::move(advice);
}

std::string memory_advice(std::string otherwise) {
  const std::lock_guard lock(kept_advice().mutex);
  return kept_advice().text.empty() ? std::move(otherwise) : kept_advice().text;
}

std::string out_of_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error)) return "out of memory";
  const std::string_view text = error.what();
  for (const std::string_view words :
       {"out of memory", "can't allocate memory", "not enough memory", "_STATUS_ALLOC_FAILED"}) {
    const std::size_t at = text.find(words);
    if (at == std::string_view::npos) continue;
    // Its sentence and the rest of the line: before them LibTorch has a place in its source, after
    // them a stack.
    const std::size_t line = text.rfind('\n', at) + 1,
                      sentence = text.substr(0, at).rfind(". ") + 2;  // npos + 1 is 0
    const std::size_t begin = sentence == 1 ? line : std::max(line, sentence);
    const std::string_view said = text.substr(begin, text.find('\n', at) - begin);
    const std::string bytes = bytes_wanted(said);
    return bytes.empty() ? std::string(said) : "out of memory: could not allocate " + bytes;
  }
  return {};
}

}  // namespace tessera
