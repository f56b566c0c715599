// SPDX-License-Identifier: Apache-2.0
// What is remembered of accesses, without a runtime: against a model of single bytes, and that it
// does not grow.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "runtime/history.hpp"

namespace tessera::cudart {
namespace {

const std::shared_ptr<const Origin> origin = std::make_shared<const Origin>();

/// Each byte has all of its accesses; streams wait for each other as chance has it.
class Model {
 public:
  static constexpr std::size_t bytes = 24, streams = 4;

  void wait() { known_[draw(streams)].merge(known_[draw(streams)]); }

  /// Whether history and model agree about an access, which is a conflict or is remembered.
  bool access(History& history, bool& conflicts) {
    const auto stream = static_cast<std::uint32_t>(draw(streams));
    const std::size_t begin = draw(bytes), end = begin + 1 + draw(bytes - begin);
    const bool writes = draw(2) == 0;
    Clock& known = known_[stream];
    const Mark mark{{stream, known.advance(stream)}, origin};
    conflicts = expects_conflict(begin, end, writes, known);
    const auto found =
        writes ? history.write({begin, end}, mark, known) : history.read({begin, end}, mark, known);
    for (std::size_t byte = begin; byte < end; ++byte)
      accesses_[byte].push_back({mark.when, writes});
    return found.has_value() == conflicts;
  }

  std::size_t draw(std::size_t below) { return random_() % below; }
  void forget() {
    accesses_.assign(bytes, {});
    known_.assign(streams, {});
  }

 private:
  struct Seen {
    Moment when;
    bool writes;
  };

  bool expects_conflict(std::size_t begin, std::size_t end, bool writes, const Clock& known) const {
    const auto conflict = [&](const Seen& seen) {
      return (writes || seen.writes) && !known.knows(seen.when);
    };
    return std::any_of(&accesses_[begin], &accesses_[end - 1] + 1, [&](const auto& byte) {
      return std::any_of(byte.begin(), byte.end(), conflict);
    });
  }

  std::mt19937 random_{7};
  std::vector<std::vector<Seen>> accesses_ = std::vector<std::vector<Seen>>(bytes);
  std::vector<Clock> known_ = std::vector<Clock>(streams);
};

TEST(History, AgreesWithAModelOfSingleBytes) {
  Model model;
  int conflicts = 0;
  for (int round = 0; round < 1000; ++round) {
    History history;
    bool conflict = false;
    for (int step = 0; step < 60 && !conflict; ++step) {
      if (model.draw(2) == 0)
        model.wait();
      else
        ASSERT_TRUE(model.access(history, conflict)) << "round " << round << " step " << step;
    }
    conflicts += conflict ? 1 : 0;
    model.forget();
  }
  EXPECT_GT(conflicts, 300);
}

class Growth : public testing::Test {
 protected:
  static std::int64_t heap() { return static_cast<std::int64_t>(mallinfo2().uordblks); }
  Mark mark() { return {{0, known.advance(0)}, origin}; }

  static constexpr int many = 100'000;
  static constexpr std::int64_t few_bytes = 64 * 1024;
  History history;
  Clock known;
  const std::int64_t before = heap();
};

TEST_F(Growth, IsNoneWithReadsOfAStream) {
  for (int i = 0; i < many; ++i) ASSERT_FALSE(history.read({0, 100}, mark(), known));
  EXPECT_LT(heap() - before, few_bytes);
}

TEST_F(Growth, IsNoneWithReadsAndWrites) {
  for (int i = 0; i < many; ++i) {
    ASSERT_FALSE(history.read({0, 100}, mark(), known));
    ASSERT_FALSE(history.write({0, 100}, mark(), known));
  }
  EXPECT_LT(heap() - before, few_bytes);
}

TEST_F(Growth, EndsWithAnAccessToTheWhole) {
  for (std::uintptr_t at = 0; at < 1000; at += 10)
    ASSERT_FALSE(history.read({at, at + 7}, mark(), known));
  EXPECT_GT(history.ranges(), 90U);
  ASSERT_FALSE(history.write({0, 1000}, mark(), known));
  EXPECT_EQ(1U, history.ranges());
  for (std::uintptr_t at = 0; at < 1000; at += 10)
    ASSERT_FALSE(history.read({at, at + 7}, mark(), known));
  ASSERT_FALSE(history.read({0, 1000}, mark(), known));
  EXPECT_EQ(1U, history.ranges());
}

TEST_F(Growth, EndsWithWhatEverybodyKnows) {
  for (std::uintptr_t at = 0; at < 1000; at += 10)
    ASSERT_FALSE(history.write({at, at + 5}, mark(), known));
  const Clock everyone = known;
  ASSERT_FALSE(history.read({2, 3}, mark(), known));
  history.forget_known(everyone);
  EXPECT_EQ(1U, history.ranges());
}

}  // namespace
}  // namespace tessera::cudart
