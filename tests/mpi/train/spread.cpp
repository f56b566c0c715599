// SPDX-License-Identifier: Apache-2.0
#include "mpi/train/spread.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>

namespace tessera::test {
namespace {

using Pairs = std::set<std::pair<int, int>>;

/// Numbers in the order of first use.
class Words {
 public:
  Pairs pairs_of(const GradientCase& row) {
    std::vector<int> numbers;
    std::istringstream name(row.name());
    for (std::string word; name >> word;)
      numbers.push_back(
          numbers_.try_emplace(word, static_cast<int>(numbers_.size())).first->second);
    std::sort(numbers.begin(), numbers.end());
    Pairs pairs;
    for (std::size_t i = 0; i < numbers.size(); ++i)
      for (std::size_t k = i + 1; k < numbers.size(); ++k) pairs.emplace(numbers[i], numbers[k]);
    return pairs;
  }

 private:
  std::map<std::string, int> numbers_;
};

std::size_t count_new(const Pairs& pairs, const Pairs& known) {
  return static_cast<std::size_t>(std::count_if(
      pairs.begin(), pairs.end(), [&](const auto& pair) { return !known.contains(pair); }));
}

}  // namespace

Spread spread_of(const std::vector<GradientCase>& rows, std::size_t count) {
  Words words;
  std::vector<Pairs> pairs;
  Pairs all, met;
  for (const GradientCase& row : rows) all.merge(Pairs(pairs.emplace_back(words.pairs_of(row))));
  Spread spread;
  while (spread.rows.size() < std::min(count, rows.size())) {
    std::vector<std::size_t> gains;
    for (const Pairs& each : pairs) gains.push_back(count_new(each, met));
    const auto best = std::max_element(gains.begin(), gains.end());
    if (*best == 0) break;
    const auto index = static_cast<std::size_t>(best - gains.begin());
    spread.rows.push_back(rows[index]);
    met.insert(pairs[index].begin(), pairs[index].end());
  }
  spread.pairs = met.size();
  spread.all_pairs = all.size();
  return spread;
}

}  // namespace tessera::test
