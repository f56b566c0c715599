#include "tessera/base/out_of_memory.hpp"

#include <algorithm>
#include <new>
#include <string_view>

namespace tessera {

std::string out_of_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error)) return "out of memory";
  const std::string_view text = error.what();
  for (const std::string_view words : {"out of memory", "can't allocate memory", "not enough memory"}) {
    const std::size_t at = text.find(words);
    if (at == std::string_view::npos) continue;
    // Its sentence and the rest of the line: before them LibTorch has a place in its source, behind them a stack.
    const std::size_t line = text.rfind('\n', at) + 1, sentence = text.substr(0, at).rfind(". ") + 2;  // npos + 1 is 0
    const std::size_t begin = sentence == 1 ? line : std::max(line, sentence);
    return std::string(text.substr(begin, text.find('\n', at) - begin));
  }
  return {};
}

}  // namespace tessera
