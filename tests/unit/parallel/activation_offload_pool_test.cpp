// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include <ATen/ops/empty.h>

#include "tessera/kernels/shapes.hpp"
#include "tessera/parallel/activation_offload.hpp"

namespace tessera::parallel {
namespace {

/// Experts get other rows in each pass: host memory is that of the passes at once, not of all sizes
/// that there ever were.
TEST(ActivationOffload, TakesHostMemoryForThePassesAtOnce) {
  const at::Device device = kernels::shape_device();
  ActivationOffload offload(device);
  constexpr std::int64_t kRow = 1024 * sizeof(float), kPasses = 3;
  std::int64_t most = 0;
  for (std::int64_t step = 0; step < 50; ++step) {
    std::vector<ActivationOffload::Pass> passes;
    for (std::int64_t pass = 0; pass < kPasses; ++pass) {
      const std::int64_t rows = 1 + (step * 37 + pass * 11) % 64;
      most = std::max(most, rows);
      passes.push_back(
          offload.send({at::empty({rows, 1024}, at::TensorOptions(device).dtype(at::kFloat))}));
    }
    for (auto pass = passes.rbegin(); pass != passes.rend(); ++pass) {
      offload.hold_for(*pass);
      offload.done_with(*pass);
    }
    EXPECT_LE(offload.host_bytes(), kPasses * most * kRow) << step;
  }
  EXPECT_GT(offload.host_bytes(), 0);
}

}  // namespace
}  // namespace tessera::parallel
