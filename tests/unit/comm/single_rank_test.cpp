// SPDX-License-Identifier: Apache-2.0
// The back ends that need no MPI: self and recording.
#include <gtest/gtest.h>

#include "mpi/comm/typed_values.hpp"
#include "tessera/comm/communicator.hpp"

namespace tessera::comm {
namespace {

using test::Values;

TEST(Self, CopiesWhatItWouldSendToItself) {
  auto self = make_self_communicator("tp");
  EXPECT_EQ(self->size(), 1);
  EXPECT_EQ(self->backend(), "self");
  Values x(DType::bf16, 5, 3), y(DType::bf16, 5);
  self->all_reduce(x.buffer()).wait();
  self->all_gather(x.buffer(), y.buffer()).wait();
  EXPECT_EQ(y[4], 3);
  Values z(DType::bf16, 5);
  const std::int64_t counts[] = {5};
  self->all_to_all_v(x.buffer(), counts, z.buffer(), counts).wait();
  EXPECT_EQ(z[0], 3);
  self->reduce_scatter(z.buffer(), z.buffer()).wait();
  EXPECT_EQ(self->traffic().calls, 4);
  EXPECT_EQ(self->traffic().bytes, 0);
  EXPECT_EQ(all_reduce_scalar(*self, 2.5), 2.5);
  EXPECT_EQ(broadcast_string(*self, "word", 0), "word");
  EXPECT_EQ(all_gather_strings(*self, "word"), std::vector<std::string>{"word"});
  EXPECT_EQ(self->split(0, 0, "part")->axis(), "part");
}

TEST(Self, MatchesTransfersInTheOrderOfTheirCalls) {
  auto self = make_self_communicator("pp");
  Values a(DType::f32, 2, 1), b(DType::f32, 3, 2), c(DType::f32, 2), d(DType::f32, 3);
  self->group_start();
  self->recv(c.buffer(), 0);
  self->send(a.buffer(), 0);
  self->send(b.buffer(), 0);
  self->recv(d.buffer(), 0);
  self->group_end().wait();
  EXPECT_EQ(c[1], 1);
  EXPECT_EQ(d[2], 2);
  EXPECT_THROW(self->send(a.buffer(), 0), Error);
  self->group_start();
  self->send(a.buffer(), 0);
  EXPECT_THROW(static_cast<void>(self->group_end()), Error);
}

TEST(Self, RefusesWrongSizes) {
  auto self = make_self_communicator("tp");
  Values a(DType::f32, 2), b(DType::f32, 3), c(DType::f64, 2);
  EXPECT_THROW(static_cast<void>(self->all_gather(a.buffer(), b.buffer())), ContractViolation);
  EXPECT_THROW(static_cast<void>(self->all_gather(a.buffer(), c.buffer())), ContractViolation);
  EXPECT_THROW(static_cast<void>(self->broadcast(a.buffer(), 1)), ContractViolation);
}

TEST(Recording, CountsAndTakesOthersForItself) {
  auto rank = make_recording_communicator(5, 16384, "dp_shard");
  EXPECT_EQ(rank->rank(), 5);
  Values part(DType::f32, 2, 7), all(DType::f32, 2 * 16384, 1);
  rank->all_gather(part.buffer(), all.buffer()).wait();
  for (const std::int64_t i : {0, 9, 10, 12, 2 * 16384 - 1}) EXPECT_EQ(all[i], 7) << i;
  rank->reduce_scatter(all.buffer(), part.buffer()).wait();
  EXPECT_EQ(part[0], 7);
  EXPECT_EQ(rank->traffic().calls, 2);
  EXPECT_EQ(rank->traffic().bytes, 8 + 8 * 16384);
  rank->group_start();
  rank->send(part.buffer(), 16383);
  rank->recv(part.buffer(), 0);
  rank->group_end().wait();
  EXPECT_EQ(rank->traffic().bytes, 16 + 8 * 16384);
  EXPECT_EQ(all_reduce_scalar(*rank, std::int64_t{4}), 4);
  EXPECT_EQ(all_reduce_scalar(*rank, 4.5), 16384 * 4.5);  // gathered, then added
  EXPECT_EQ(broadcast_string(*rank, "word", 0), "word");
  EXPECT_EQ(all_gather_strings(*rank, "word")[5], "word");
  EXPECT_THROW(static_cast<void>(rank->split(0, 0, "part")), Error);
}

/// So that what is sent stays as long as in a run, where the peer comes later.
TEST(Recording, TransfersEndWithTheNextOnes) {
  auto rank = make_recording_communicator(0, 2, "pp");
  Values sent(DType::f32, 1);
  const auto send = [&] {
    rank->group_start();
    rank->send(sent.buffer(), 1);
    return rank->group_end();
  };
  Request first = send();
  EXPECT_FALSE(first.test());
  Request second = send();
  EXPECT_TRUE(first.test());
  EXPECT_FALSE(second.test());
}

/// What nobody wrote might be no number, or counts of a petabyte.
TEST(Recording, LeavesNothingUnwritten) {
  auto rank = make_recording_communicator(1, 2, "ep");
  Values sent(DType::i64, 4), all(DType::i64, 4, 99);
  for (std::int64_t i = 0; i < 4; ++i) sent.set(i, static_cast<double>(i));
  rank->all_to_all(sent.buffer(), all.buffer()).wait();
  for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(all[i], i % 2 == 0 ? 2 : 3) << i;
  Values more(DType::i64, 5, 99);
  const std::int64_t out[] = {1, 3}, in[] = {2, 3};
  rank->all_to_all_v(sent.buffer(), out, more.buffer(), in).wait();
  for (std::int64_t i = 0; i < 5; ++i) EXPECT_EQ(more[i], i < 2 ? 0 : i - 1) << i;
  rank->group_start();
  rank->recv(more.buffer(), 0);
  rank->group_end().wait();
  EXPECT_EQ(more[4], 0);
}

}  // namespace
}  // namespace tessera::comm
