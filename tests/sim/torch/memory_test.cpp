// SPDX-License-Identifier: Apache-2.0
// LibTorch's caching allocator on the simulated device: what the checker says when a stream still
// uses what another one gives back, and pinned memory.
#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "sim/sim.hpp"

namespace tessera::sim {
namespace {

using at::Tensor;
using ::testing::HasSubstr;

/// Runs `body`, which may throw because the device has failed, and returns what the checker found.
template <class Body>
std::vector<std::string> races_of(const Body& body) {
  c10::cuda::device_synchronize();
  forget_races();
  try {
    body();
  } catch (const c10::Error&) {
    // The device is sticky.
  }
  const std::vector<std::string> found = races();
  forget_races();
  c10::cuda::device_synchronize();
  forget_races();
  return found;
}

Tensor filled(double value) {
  return at::full({1 << 16}, value, at::device(at::kCUDA).dtype(at::kFloat));
}

c10::cuda::CUDAStream side_stream() {
  static const c10::cuda::CUDAStream stream = c10::cuda::getStreamFromPool();
  return stream;
}

/// Copies `from` to `to` on the side stream.
void copy_aside(const Tensor& to, const Tensor& from) {
  const c10::cuda::CUDAStreamGuard guard(side_stream());
  to.copy_(from);
}

void wait_aside() {
  c10::Event event(at::kCUDA);
  event.record(c10::cuda::getCurrentCUDAStream());
  event.block(side_stream());
}

void wait_for_aside() {
  c10::Event event(at::kCUDA);
  event.record(side_stream());
  event.block(c10::cuda::getCurrentCUDAStream());
}

TEST(Races, NoneWhereBothWaitsAreThere) {
  EXPECT_TRUE(races_of([] {
                const Tensor a = filled(1), b = filled(0);
                wait_aside();
                copy_aside(b, a);
                wait_for_aside();
                EXPECT_EQ(b.sum().item<float>(), 1 << 16);
              }).empty());
}

TEST(Races, NoWaitBeforeTheSideStream) {
  const auto found = races_of([] {
    const Tensor b = filled(0);
    wait_aside();
    const Tensor a = filled(1);
    copy_aside(b, a);
  });
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0], HasSubstr("memcpy"));
}

TEST(Races, NoWaitAfterTheSideStream) {
  const auto found = races_of([] {
    const Tensor a = filled(1), b = filled(0);
    wait_aside();
    copy_aside(b, a);
    b.add_(1);
  });
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0], HasSubstr("aten::add"));
}

/// The one race of `body`, which begins when the side stream knows all that came before.
template <class Body>
std::string race_behind_wait(const Body& body) {
  const auto found = races_of([&] {
    const Tensor a = filled(1), b = filled(2);
    wait_aside();
    body(a, b);
  });
  return found.size() == 1 ? found[0] : "";
}

/// On the side stream.
template <class Body>
void aside(const Body& body) {
  const c10::cuda::CUDAStreamGuard guard(side_stream());
  body();
}

TEST(Races, OperatorsSayWhatTheyRead) {
  const std::string race = race_behind_wait([](const Tensor& a, const Tensor& b) {
    a.zero_();
    aside([&] { at::mul_out(const_cast<Tensor&>(b), a, a); });
  });
  EXPECT_THAT(race, HasSubstr("aten::mul.out on stream"));
  EXPECT_THAT(race, HasSubstr("reads"));
}

TEST(Races, OperatorsSayWhatTheyWrite) {
  const std::string race = race_behind_wait([](const Tensor& a, const Tensor& b) {
    copy_aside(b, a);
    a.zero_();
  });
  EXPECT_THAT(race, HasSubstr("aten::zero_ on the default stream writes"));
}

TEST(Races, FreshResultsAreWritten) {
  const Tensor places = at::arange(4, at::kCUDA);
  Tensor rows, copy;
  const std::string race = race_behind_wait([&](const Tensor& a, const Tensor&) {
    rows = a.index_select(0, places);
    aside([&] { copy = rows.clone(); });
  });
  EXPECT_THAT(race, HasSubstr("that aten::index_select on the default stream writes"));
}

TEST(Races, StridedCopiesSayWhatTheyTouch) {
  const std::string race = race_behind_wait([](const Tensor& a, const Tensor& b) {
    aside([&] { b.view({256, 256}).copy_(a.view({256, 256}).t()); });
    a.zero_();
  });
  EXPECT_THAT(race, HasSubstr("aten::zero_ on the default stream writes"));
  EXPECT_THAT(race, HasSubstr("that aten::copy_ on stream"));
}

/// Whoever had the memory before may still use it on the block's stream.
TEST(Races, NewBlockUsedOnTheSideStreamWithoutAWait) {
  Tensor fresh;
  const std::string race = race_behind_wait([&](const Tensor& a, const Tensor&) {
    fresh = at::empty_like(a);
    aside([&] { fresh.zero_(); });
  });
  EXPECT_THAT(race, HasSubstr("that allocation on the default stream writes"));
}

TEST(Races, BlockGivenBackWhileTheSideStreamReads) {
  const auto found = races_of([] {
    const Tensor b = filled(0);
    {
      const Tensor a = filled(1);
      wait_aside();
      copy_aside(b, a);
    }
    wait_for_aside();
  });
  ASSERT_FALSE(found.empty());
  EXPECT_THAT(found[0], HasSubstr("free"));
}

TEST(Races, RecordStreamHoldsTheBlock) {
  EXPECT_TRUE(races_of([] {
                const Tensor b = filled(0);
                {
                  Tensor a = filled(1);
                  wait_aside();
                  copy_aside(b, a);
                  a.record_stream(side_stream().unwrap());
                }
                wait_for_aside();
                const Tensor c = filled(2);
                EXPECT_EQ((b + c).sum().item<float>(), 3 << 16);
              }).empty());
}

TEST(Races, ViewsOfOtherPartsAreNone) {
  EXPECT_TRUE(races_of([] {
                const Tensor a = at::zeros({64, 64}, at::kCUDA);
                wait_aside();
                {
                  const c10::cuda::CUDAStreamGuard guard(side_stream());
                  a.narrow(1, 0, 32).add_(1);
                }
                a.narrow(1, 32, 32).add_(2);
                wait_for_aside();
                EXPECT_EQ(a.sum().item<float>(), 64 * 32 * 3);
              }).empty());
}

TEST(Memory, GivenBackIsPoison) {
  void* place = nullptr;
  {
    const Tensor a = filled(1);
    place = a.data_ptr();
  }
  const Tensor b = at::empty({1 << 16}, at::device(at::kCUDA).dtype(at::kFloat));
  ASSERT_EQ(b.data_ptr(), place) << "the allocator gave another block";
  EXPECT_TRUE(b.isnan().all().item<bool>());
}

TEST(Memory, StatisticsAreLibTorchs) {
  const auto bytes = [] {
    return c10::cuda::CUDACachingAllocator::getDeviceStats(0)
        .allocated_bytes[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)]
        .current;
  };
  const std::int64_t before = bytes();
  const Tensor a = filled(1);
  EXPECT_EQ(bytes() - before, 4 << 16);
}

const at::TensorOptions pinned = at::TensorOptions().pinned_memory(true);

TEST(Pinned, IsWhatLibTorchSays) {
  EXPECT_TRUE(at::empty({4}, pinned).is_pinned());
  EXPECT_FALSE(at::empty({4}).is_pinned());
}

/// A copy behind a task that waits for this test: the host goes on, and the copy's memory is given
/// to no one else.
TEST(Pinned, IsKeptUntilACopyIsDone) {
  const Tensor device = at::empty({1 << 16}, at::device(at::kCUDA).dtype(at::kFloat));
  Tensor host = at::full({1 << 16}, 7, pinned.dtype(at::kFloat));
  const void* const place = host.data_ptr();
  std::promise<void> go;
  const auto stream = c10::cuda::getCurrentCUDAStream();
  ASSERT_EQ(enqueue(stream, "the test", {},
                    [done = go.get_future().share()] {
                      done.wait();
                      return cudaSuccess;
                    }),
            cudaSuccess);
  device.copy_(host, /*non_blocking=*/true);
  host = Tensor();
  EXPECT_NE(at::empty({1 << 16}, pinned.dtype(at::kFloat)).data_ptr(), place);
  go.set_value();
  EXPECT_EQ(device.sum().item<float>(), 7 << 16);
}

TEST(Pinned, OverwrittenWhileACopyReadsIsARace) {
  const Tensor host = at::ones({1 << 16}, pinned), b = filled(3);
  Tensor a;
  const auto found = races_of([&] {
    wait_aside();
    a = host.to(at::kCUDA, /*non_blocking=*/true);
    const c10::cuda::CUDAStreamGuard guard(side_stream());
    Tensor(host).copy_(b, true);
  });
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0], HasSubstr("memcpy"));
}

TEST(Device, IsThereForLibTorch) {
  EXPECT_EQ(at::globalContext().hasCUDA(), true);
  EXPECT_EQ(at::getAccelerator(), at::kCUDA);
  EXPECT_TRUE(at::from_blob(filled(1).data_ptr(), {4}, at::kCUDA).is_cuda());
}

}  // namespace
}  // namespace tessera::sim
