// SPDX-License-Identifier: Apache-2.0
// The copies of an asynchronous save (src/train/device_cuda.cpp) between two updates. A thread of
// its own waits for them, as the saver's does, which orders nothing for the thread that trains.
#include <ATen/ATen.h>
#include <c10/cuda/CUDAFunctions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>

#include "sim/sim.hpp"
#include "tessera/train/device_copies.hpp"

namespace tessera::sim {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t count = 1 << 12;
constexpr std::size_t bytes = count * sizeof(float);

class SaverCopies : public testing::Test {
 protected:
  void TearDown() override {
    c10::cuda::device_synchronize();
    copies_.reset();
    forget_races();
  }

  void update() { weights_.add_(1); }
  void begin_save() {
    copy_ = copies_->reserve(bytes);
    copies_->copy(copy_, weights_.data_ptr(), bytes);
  }
  /// Calls update() while the saver's thread has all copies and lives.
  template <class Update>
  void while_written(const Update& update) {
    std::atomic<bool> copied = false, updated = false;
    std::thread writer([&] {
      copies_->wait();
      std::memcpy(&written_, copy_, sizeof written_);
      copied = true;
      while (!updated) std::this_thread::yield();
    });
    while (!copied) std::this_thread::yield();
    update();
    updated = true;
    writer.join();
  }
  /// What is said to an update that waits for nothing.
  template <class Update>
  static std::string race_of(const Update& update) {
    EXPECT_ANY_THROW(update());
    const std::vector<std::string> found = races();
    forget_races();
    return found.empty() ? "no race" : found.front();
  }

  std::unique_ptr<train::DeviceCopies> copies_ =
      train::make_device_copies(at::Device(at::kCUDA, 0));
  at::Tensor weights_ = at::zeros({count}, at::device(at::kCUDA).dtype(at::kFloat));
  std::byte* copy_ = nullptr;
  float written_ = -1;
};

TEST_F(SaverCopies, AreMadeBetweenTwoUpdates) {
  for (int step = 1; step <= 5; ++step) {
    update();
    begin_save();
    while_written([this] {
      copies_->hold_updates();
      update();
    });
    EXPECT_EQ(written_, static_cast<float>(2 * step - 1));
  }
  EXPECT_TRUE(races().empty()) << races().front();
}

TEST_F(SaverCopies, MustHoldTheNextUpdate) {
  update();
  begin_save();
  std::string race;
  while_written([&] { race = race_of([this] { update(); }); });
  EXPECT_THAT(race, HasSubstr("that memcpy on stream"));
}

TEST_F(SaverCopies, HoldTheNextUpdateThoughNobodyHasWaited) {
  update();
  begin_save();
  copies_->hold_updates();
  update();
  copies_->wait();
  EXPECT_EQ(weights_.sum().item<float>(), 2 * count);
  EXPECT_TRUE(races().empty()) << races().front();
}

}  // namespace
}  // namespace tessera::sim
