// SPDX-License-Identifier: Apache-2.0
#include "mpi/train/spread.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <sstream>

namespace tessera::test {
namespace {

/// What each row has or lacks: property 2w where its name has word w, else 2w + 1.
class Properties {
 public:
  explicit Properties(const std::vector<GradientCase>& rows) {
    std::map<std::string, std::size_t> words;
    std::vector<std::vector<std::size_t>> names;
    for (const GradientCase& row : rows) {
      std::istringstream name(row.name());
      std::vector<std::size_t>& numbers = names.emplace_back();
      for (std::string word; name >> word;)
        numbers.push_back(words.try_emplace(word, words.size()).first->second);
    }
    count_ = 2 * words.size();
    for (const std::vector<std::size_t>& name : names) {
      std::vector<std::size_t>& properties = rows_.emplace_back();
      for (std::size_t word = 0; word < words.size(); ++word)
        properties.push_back(2 * word + (std::ranges::find(name, word) == name.end()));
    }
  }
  std::size_t count() const { return count_; }
  const std::vector<std::size_t>& of(std::size_t row) const { return rows_[row]; }

 private:
  std::size_t count_ = 0;
  std::vector<std::vector<std::size_t>> rows_;
};

/// Pairs that have been met; of a property with itself, too.
class Met {
 public:
  explicit Met(std::size_t properties) : size_(properties), met_(properties * properties) {}
  std::size_t new_pairs(const std::vector<std::size_t>& row) const {
    std::size_t count = 0;
    visit(row, [&](std::size_t pair) { count += !met_[pair]; });
    return count;
  }
  std::size_t new_properties(const std::vector<std::size_t>& row) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        row, [&](std::size_t property) { return !met_[property * size_ + property]; }));
  }
  void add(const std::vector<std::size_t>& row) {
    visit(row, [&](std::size_t pair) { met_[pair] = true; });
  }
  std::size_t pairs() const { return static_cast<std::size_t>(std::ranges::count(met_, true)); }

 private:
  template <class Function>
  void visit(const std::vector<std::size_t>& row, Function function) const {
    for (std::size_t i = 0; i < row.size(); ++i)
      for (std::size_t k = i; k < row.size(); ++k) function(row[i] * size_ + row[k]);
  }

  std::size_t size_;
  std::vector<bool> met_;
};

/// The row that adds most. What a row adds never grows, so that the last figures bound it.
template <class Gain>
std::size_t best_row(std::vector<std::size_t>& bounds, Gain gain) {
  while (true) {
    const auto best = static_cast<std::size_t>(std::ranges::max_element(bounds) - bounds.begin());
    const std::size_t now = gain(best);
    if (now == bounds[best]) return best;
    bounds[best] = now;
  }
}

}  // namespace

Spread spread_of(const std::vector<GradientCase>& rows, std::size_t count) {
  Spread spread;
  if (rows.empty()) return spread;
  const Properties properties(rows);
  Met met(properties.count()), all(properties.count());
  for (std::size_t i = 0; i < rows.size(); ++i) all.add(properties.of(i));
  const auto take = [&](auto gain, std::size_t most) {
    std::vector<std::size_t> bounds(rows.size(), std::numeric_limits<std::size_t>::max());
    while (spread.rows.size() < most) {
      const std::size_t row = best_row(bounds, gain);
      if (bounds[row] == 0) return;
      spread.rows.push_back(rows[row]);
      met.add(properties.of(row));
    }
  };
  if (count >= rows.size()) {
    spread.rows = rows;
    met = all;
  }
  take([&](std::size_t row) { return met.new_pairs(properties.of(row)); }, count);
  take([&](std::size_t row) { return met.new_properties(properties.of(row)); }, rows.size());
  spread.pairs = met.pairs();
  spread.all_pairs = all.pairs();
  return spread;
}

void expect_equal_spread(comm::World& world, const std::vector<GradientCase>& rows,
                         std::size_t count) {
  bool strict = false;
  for (GradientCase row : spread_of(rows, count).rows) {
    row.backend = strict ? comm::Backend::strict : comm::Backend::mpi;
    expect_equal_gradients(world, row);
    strict = !strict;
  }
}

std::size_t rows_from_environment(std::size_t usual) {
  const char* given = std::getenv("TESSERA_ROWS");
  if (!given) return usual;
  return given == std::string("all") ? std::numeric_limits<std::size_t>::max() : std::stoul(given);
}

std::vector<GradientCase> in_types_by_turns(std::vector<GradientCase> rows) {
  const char* types[] = {"float64", "float32", "bfloat16"};
  for (std::size_t i = 0; i < rows.size(); ++i)
    rows[i].dtype = types[i % (rows[i].family.empty() ? 3 : 2)];
  return rows;
}

}  // namespace tessera::test
