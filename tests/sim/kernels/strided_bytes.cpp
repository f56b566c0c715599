// SPDX-License-Identifier: Apache-2.0
#include "strided_bytes.hpp"

#include <algorithm>

namespace tessera::sim {
namespace {

constexpr std::int64_t kMostPieces = 1024;

std::int64_t pieces(const std::vector<Repeat>& repeats, std::size_t first) {
  std::int64_t count = 1;
  for (std::size_t i = first; i < repeats.size(); ++i) count *= repeats[i].count;
  return count;
}

/// Repeats by growing stride, without those that repeat nothing or the same place.
void normalise(std::vector<Repeat>& repeats) {
  std::erase_if(repeats, [](const Repeat& r) { return r.count == 1 || r.stride == 0; });
  std::sort(repeats.begin(), repeats.end(),
            [](const Repeat& a, const Repeat& b) { return a.stride < b.stride; });
}

}  // namespace

void add_accesses(std::vector<Access>& accesses, const void* data, std::size_t bytes,
                  std::vector<Repeat> repeats, bool writes) {
  if (bytes == 0 ||
      std::any_of(repeats.begin(), repeats.end(), [](const Repeat& r) { return r.count == 0; }))
    return;
  normalise(repeats);
  auto run = static_cast<std::int64_t>(bytes);
  std::size_t inner = 0;
  while (inner < repeats.size() &&
         (repeats[inner].stride <= run || pieces(repeats, inner) > kMostPieces)) {
    run = std::max(run, (repeats[inner].count - 1) * repeats[inner].stride + run);
    ++inner;
  }
  const std::int64_t count = pieces(repeats, inner);
  for (std::int64_t piece = 0; piece < count; ++piece) {
    std::int64_t rest = piece, offset = 0;
    for (std::size_t i = inner; i < repeats.size(); ++i) {
      offset += rest % repeats[i].count * repeats[i].stride;
      rest /= repeats[i].count;
    }
    accesses.push_back(
        {static_cast<const std::byte*>(data) + offset, static_cast<std::size_t>(run), writes});
  }
}

}  // namespace tessera::sim
