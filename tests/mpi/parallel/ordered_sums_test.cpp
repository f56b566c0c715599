// SPDX-License-Identifier: Apache-2.0
// Sums over NCCL that have the bits of the host's, which are those of one tree of ranks.
#include "tessera/parallel/ordered_sums.hpp"

#include <gtest/gtest.h>

#include <random>

#include "mpi/comm/mpi_main.hpp"
#include "mpi/comm/typed_values.hpp"
#include "tessera/train/device.hpp"
#include "test_device.hpp"

namespace tessera::parallel {
namespace {

using comm::Memory;
using test::Values;
using test::world;

Values random_values(DType dtype, std::int64_t count, Memory memory) {
  std::mt19937 generator(static_cast<unsigned>(world().rank() + 1));
  std::normal_distribution<double> normal(0, 100);
  Values values(dtype, count, 0, memory);
  for (std::int64_t i = 0; i < count; ++i) values.set(i, normal(generator));
  return values;
}

class OrderedSums : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::on_device()) GTEST_SKIP() << "no device";
    plan::DevicePlan shared;
    shared.share = true;
    const at::Device device = train::choose_device(world(), shared).device;
    ordered_ = with_ordered_sums(world().make(comm::Backend::nccl, "dp"), device);
    host_ = world().make(comm::Backend::mpi, "dp");
  }
  int n() const { return ordered_->size(); }
  void expect_host_bits(comm::Communicator& ordered, comm::Communicator& host) const {
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
      for (const std::int64_t count : {0, 1, 5, 1003, 70001}) {
        Values x = random_values(dtype, count, Memory::device),
               y = random_values(dtype, count, Memory::host);
        ordered.all_reduce(x.buffer()).wait();
        host.all_reduce(y.buffer()).wait();
        EXPECT_EQ(x.bytes(), y.bytes()) << name_of(dtype) << ' ' << count;
      }
      for (const std::int64_t count : {1, 1003}) {
        const std::int64_t all = count * ordered.size();
        Values x = random_values(dtype, all, Memory::device),
               y = random_values(dtype, all, Memory::host);
        Values part(dtype, count, 0, Memory::device), same(dtype, count);
        ordered.reduce_scatter(x.buffer(), part.buffer()).wait();
        host.reduce_scatter(y.buffer(), same.buffer()).wait();
        EXPECT_EQ(part.bytes(), same.bytes()) << name_of(dtype) << ' ' << count;
        const comm::Buffer buffer = x.buffer();
        ordered.reduce_scatter(buffer, buffer.part(ordered.rank() * count, count)).wait();
        std::int64_t wrong = 0;  // no ASSERT: a rank that leaves alone would let the others wait
        for (std::int64_t i = 0; i < count; ++i) wrong += x[ordered.rank() * count + i] != same[i];
        EXPECT_EQ(wrong, 0) << name_of(dtype) << ' ' << count << ", in place";
      }
    }
  }
  std::unique_ptr<comm::Communicator> ordered_, host_;
};

TEST_F(OrderedSums, HaveTheHostsBits) { expect_host_bits(*ordered_, *host_); }

/// All ranks in the opposite order: three or fewer would have NCCL's order, too.
TEST_F(OrderedSums, AlsoInParts) {
  const auto ordered = ordered_->split(0, -world().rank(), "part"),
             host = host_->split(0, -world().rank(), "part");
  expect_host_bits(*ordered, *host);
}

/// Otherwise the tests above would pass with any order.
TEST_F(OrderedSums, NcclHasAnotherOrder) {
  if (n() < 4) GTEST_SKIP() << "two or three numbers have one order";
  Values x = random_values(DType::f32, 1003, Memory::device),
         y = random_values(DType::f32, 1003, Memory::host);
  world().make(comm::Backend::nccl, "dp")->all_reduce(x.buffer()).wait();
  host_->all_reduce(y.buffer()).wait();
  EXPECT_NE(x.bytes(), y.bytes());
}

TEST_F(OrderedSums, OtherReductionsPass) {
  Values most = random_values(DType::f32, 1003, Memory::device),
         same = random_values(DType::f32, 1003, Memory::host);
  ordered_->all_reduce(most.buffer(), comm::Op::max).wait();
  host_->all_reduce(same.buffer(), comm::Op::max).wait();
  EXPECT_EQ(most.bytes(), same.bytes());
  Values count(DType::i64, 3, 2, Memory::device);
  ordered_->all_reduce(count.buffer()).wait();
  EXPECT_EQ(count[2], 2 * n());
}

TEST_F(OrderedSums, MpiIsOrderedAlready) {
  auto host = world().make(comm::Backend::mpi, "dp", Memory::device);
  const comm::Communicator* plain = host.get();
  EXPECT_EQ(with_ordered_sums(std::move(host), at::Device(at::kCUDA, 0)).get(), plain);
}

}  // namespace
}  // namespace tessera::parallel
