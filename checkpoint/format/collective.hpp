// SPDX-License-Identifier: Apache-2.0
// What the ranks of a save or load tell each other. Nothing here moves tensor data.
#pragma once

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tessera/comm/communicator.hpp"

namespace tessera::checkpoint {

/// Collective: folds the ranks' strings into one on rank 0 over a binomial tree, in rank order; ""
/// on the others. merge(a, b) must be associative. No rank ever holds more than one merged string
/// and one received.
std::string reduce_to_root(
    comm::Communicator& control, std::string mine,
    const std::function<std::string(std::string, const std::string&)>& merge);

/// Collective: every rank's numbers, in rank order, on every rank.
template <class Word>
std::vector<std::vector<Word>> all_gather_words(comm::Communicator& control,
                                                const std::vector<Word>& mine) {
  const std::string bytes(reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(Word));
  std::vector<std::vector<Word>> all;
  for (const std::string& other : comm::all_gather_strings(control, bytes)) {
    all.emplace_back(other.size() / sizeof(Word));
    std::memcpy(all.back().data(), other.data(), other.size());
  }
  return all;
}

}  // namespace tessera::checkpoint
