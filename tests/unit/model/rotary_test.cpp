// SPDX-License-Identifier: Apache-2.0
// YaRN that applies to long trainings alone: a model computes as it was trained, whatever the
// length of its input.
#include <gtest/gtest.h>

#include "tessera/model/model.hpp"
#include "tessera/model_spec/families.hpp"

namespace tessera::model {
namespace {

constexpr std::int64_t kShort = 16, kLong = 4100;  // the original positions are 4096

/// Cosines of the first positions.
at::Tensor cosines(std::int64_t positions, std::int64_t trained_positions) {
  const DecoderShape shape = decoder_flavor("deepseek_v3", "debugmodel");
  const Model model = make_decoder(shape, positions, at::kFloat, at::kCPU, trained_positions);
  return model.angles.cos.narrow(0, 0, kShort);
}

TEST(Rotary, LengthOfTrainingDecidesOnYarn) {
  EXPECT_TRUE(at::equal(cosines(kLong, kShort), cosines(kShort, kShort)));
  EXPECT_TRUE(at::equal(cosines(kShort, kLong), cosines(kLong, kLong)));
  EXPECT_FALSE(at::equal(cosines(kLong, kShort), cosines(kLong, kLong)));
  EXPECT_TRUE(at::equal(cosines(kLong, 0), cosines(kLong, kLong)));
}

}  // namespace
}  // namespace tessera::model
