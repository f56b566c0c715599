// SPDX-License-Identifier: Apache-2.0
// Sums have the bits of the serial tree, whichever algorithm ran.
#include <gtest/gtest.h>

#include <random>

#include "mpi/comm/mpi_main.hpp"
#include "mpi/comm/typed_values.hpp"
#include "reduction.hpp"

namespace tessera::comm {
namespace {

using test::Values;
using test::world;

Values random_values(int rank, DType dtype, std::int64_t count, Memory memory = Memory::host) {
  std::mt19937 generator(static_cast<unsigned>(rank + 1));
  std::normal_distribution<double> normal(0, 100);
  Values values(dtype, count, 0, memory);
  for (std::int64_t i = 0; i < count; ++i) values.set(i, normal(generator));
  return values;
}

/// All ranks' values, made again here and summed serially.
Values expected_sum(DType dtype, std::int64_t count) {
  std::vector<Values> parts;
  for (int r = 0; r < world().size(); ++r) parts.push_back(random_values(r, dtype, count));
  std::vector<const void*> pointers;
  for (Values& part : parts) pointers.push_back(part.buffer().data);
  Values out(dtype, count);
  reduce_parts(pointers, out.buffer().data, count, dtype, Op::sum);
  return out;
}

TEST(Determinism, AllReduceAndReduceScatterHaveTheBitsOfTheTree) {
  const Memory memory = test::test_memory();
  const int n = world().size(), me = world().rank();
  auto mpi = world().make(Backend::mpi, "dp", memory),
       strict = world().make(Backend::strict, "dp", memory);
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    for (const std::int64_t each : {5, 2003}) {
      const std::int64_t count = each * n;
      const Values expected = expected_sum(dtype, count);
      for (Communicator* comm : {mpi.get(), strict.get()}) {
        Values x = random_values(me, dtype, count, memory), y = x, part(dtype, each, 0, memory);
        comm->all_reduce(x.buffer()).wait();
        EXPECT_EQ(x.bytes(), expected.bytes()) << name_of(dtype) << ' ' << count;
        comm->reduce_scatter(y.buffer(), part.buffer()).wait();
        for (std::int64_t i = 0; i < each; ++i) ASSERT_EQ(part[i], expected[me * each + i]);
      }
    }
  }
}

}  // namespace
}  // namespace tessera::comm
