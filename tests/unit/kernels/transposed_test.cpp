// SPDX-License-Identifier: Apache-2.0
// The transposing copy against LibTorch's, on the host whatever the tests' device is.
#include "host/transposed.hpp"

#include <gtest/gtest.h>

#include "tessera/base/error.hpp"

namespace tessera::kernels::test {
namespace {

using at::Tensor;

void expect_transpose(const Tensor& x) {
  const Tensor copy = transposed_copy(x);
  EXPECT_TRUE(copy.is_contiguous());
  EXPECT_TRUE(at::equal(copy, x.t()));
}

/// Around a tile of 4 and a block of 32, and enough for several threads.
TEST(TransposedCopy, IsLibTorchs) {
  for (const std::int64_t rows : {0, 1, 3, 4, 31, 33, 66, 1030})
    for (const std::int64_t columns : {0, 1, 2, 5, 32, 63, 300}) {
      SCOPED_TRACE(testing::Message() << rows << " x " << columns);
      const Tensor wide = at::randn({rows, columns + 3});
      expect_transpose(wide.narrow(1, 2, columns));
      expect_transpose(wide);
    }
}

TEST(TransposedCopy, RefusesOtherTensors) {
  EXPECT_THROW(transposed_copy(at::randn({3, 4}, at::kDouble)), ContractViolation);
  EXPECT_THROW(transposed_copy(at::randn({3, 4}).t()), ContractViolation);
}

}  // namespace
}  // namespace tessera::kernels::test
