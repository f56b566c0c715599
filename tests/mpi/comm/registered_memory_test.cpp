// SPDX-License-Identifier: Apache-2.0
// Memory that NCCL, or its double, knows before it is used.
#include <gtest/gtest.h>

#include "device_memory.hpp"
#include "mpi/comm/mpi_main.hpp"
#include "mpi/comm/typed_values.hpp"
#include "tessera/comm/world.hpp"

namespace tessera::comm {
namespace {

using test::Values;
using test::world;

/// In place, as FSDP gathers. A piece comes back with its last owner, and serves its size again.
TEST(RegisteredMemory, IsUsedAgain) {
  if (!test::on_device()) GTEST_SKIP() << "no device";
  auto comm = world().make(Backend::nccl, "fsdp");
  const int me = world().rank(), n = world().size();
  const auto count = static_cast<std::size_t>(10 * n), bytes = count * sizeof(float);
  const void* first = nullptr;
  for (int round = 0; round < 2; ++round) {
    const std::shared_ptr<void> memory = comm->registered_memory(bytes);
    ASSERT_NE(memory, nullptr);
    if (round == 1) {
      EXPECT_EQ(memory.get(), first);
    }
    first = memory.get();
    EXPECT_NE(comm->registered_memory(bytes).get(), first);
    EXPECT_NE(comm->registered_memory(2 * bytes).get(), first);
    Buffer all{memory.get(), 10 * n, DType::f32, Memory::device};
    Buffer own{static_cast<float*>(memory.get()) + 10 * me, 10, DType::f32, Memory::device};
    Values x(DType::f32, 10, me + round, Memory::device);
    Values y(DType::f32, 10 * n, 0, Memory::device);
    copy_on_device(x.buffer().data, own.data, own.bytes());
    comm->all_gather(own, all).wait();
    copy_on_device(all.data, y.buffer().data, all.bytes());
    for (int r = 0; r < n; ++r) EXPECT_EQ(y[10 * r], r + round);
    comm->reduce_scatter(all, x.buffer()).wait();
    EXPECT_EQ(x[0], n * (me + round));
  }
  EXPECT_EQ(comm->host().registered_memory(bytes), nullptr);
  testing::internal::CaptureStderr();
  comm.reset();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace tessera::comm
