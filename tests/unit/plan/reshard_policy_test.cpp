// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan/reshard_policy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.hpp"
#include "tessera/base/error.hpp"

namespace tessera::plan {
namespace {

using tessera::test::error_of;
using Frees = ReshardPolicy::Kind;

const std::vector<UnitWeights> kUnits{{"tok_embeddings", 50, false},
                                      {"layers.0", 10, false},
                                      {"layers.1", 10, false},
                                      {"layers.10", 10, false},
                                      {"[norm, output]", 50, true}};

/// 'f' freed, 'k' kept, a digit for a group of that size; unit by unit.
std::string resolved(const ReshardPolicy& policy, const std::vector<ReshardRule>& rules = {},
                     bool pipelined = false, std::int64_t budget = 0) {
  std::string text;
  for (const UnitReshard& unit : resolve_reshard(policy, rules, kUnits, pipelined, 8, budget))
    text += unit.group > 0 ? static_cast<char>('0' + unit.group) : unit.free ? 'f' : 'k';
  return text;
}

TEST(ReshardPolicy, Parses) {
  EXPECT_EQ(ReshardPolicy::parse("default")->kind, Frees::standard);
  EXPECT_EQ(ReshardPolicy::parse("last_layer")->kind, Frees::last_layer);
  EXPECT_EQ(ReshardPolicy::parse("auto")->kind, Frees::automatic);
  EXPECT_EQ(ReshardPolicy::parse("8")->group, 8);
  for (const char* wrong : {"", "0", "-1", "8x", "Always", " 8", "99999999999"})
    EXPECT_FALSE(ReshardPolicy::parse(wrong)) << wrong;
}

TEST(ReshardPolicy, DecidesUnitByUnit) {
  EXPECT_EQ(resolved({Frees::standard}), "ffffk");
  EXPECT_EQ(resolved({Frees::standard}, {}, /*pipelined=*/true), "kkkkk");
  EXPECT_EQ(resolved({Frees::always}), "fffff");
  EXPECT_EQ(resolved({Frees::never}), "kkkkk");
  EXPECT_EQ(resolved({Frees::last_layer}, {}, /*pipelined=*/true), "ffffk");
  EXPECT_EQ(resolved({Frees::group, 4}), "44444");
  EXPECT_EQ(resolved({Frees::group, 8}), "fffff");
  EXPECT_EQ(resolved({Frees::group, 1}), "kkkkk");
}

TEST(ReshardPolicy, FreesWhatItFreesOfMostUnits) {
  for (const bool pipelined : {false, true}) {
    for (const ReshardPolicy policy : {ReshardPolicy{Frees::standard},
                                       {Frees::always},
                                       {Frees::never},
                                       {Frees::last_layer},
                                       {Frees::group, 1},
                                       {Frees::group, 4},
                                       {Frees::group, 8},
                                       {Frees::automatic}})
      EXPECT_EQ(policy.frees(pipelined), resolved(policy, {}, pipelined)[1] != 'k')
          << static_cast<int>(policy.kind) << " " << policy.group;
  }
}

TEST(ReshardPolicy, AutoKeepsTheLastUnitsThatFit) {
  EXPECT_EQ(resolved({Frees::automatic}, {}, false, 0), "fffff");
  EXPECT_EQ(resolved({Frees::automatic}, {}, false, 70), "ffkkk");
  EXPECT_EQ(resolved({Frees::automatic}, {}, false, 45), "fkkkf");
  EXPECT_EQ(resolved({Frees::automatic}, {}, false, 1000), "kkkkk");
}

TEST(ReshardPolicy, TheFirstRuleWins) {
  EXPECT_EQ(resolved({Frees::always}, {{"layers\\.[0-3]$", {Frees::never}}}), "fkkff");
  EXPECT_EQ(
      resolved({Frees::never}, {{"layers\\.1$", {Frees::group, 2}}, {"layers", {Frees::always}}}),
      "kf2fk");
}

TEST(ReshardPolicy, GroupsMustDivide) {
  EXPECT_THAT(error_of(ExitCode::usage,
                       [] {
                         resolved({Frees::group, 3});
                       }),
              testing::HasSubstr("choose a divisor of 8"));
}

}  // namespace
}  // namespace tessera::plan
