// SPDX-License-Identifier: Apache-2.0
// What the device measures of waits for communication (src/comm/device_waits.hpp).
#include "device_waits.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "capture_fixture.hpp"
#include "device_hooks.hpp"
#include "tessera/comm/device.hpp"

namespace tessera::comm {

void check_cuda(cudaError_t code, const char* call) { EXPECT_EQ(cudaSuccess, code) << call; }

}  // namespace tessera::comm

namespace tessera::sim {
namespace {

using std::chrono::milliseconds, std::chrono::nanoseconds, std::chrono::steady_clock;

/// Stream b is that of the communication, which ends when the host says so. The host does that
/// `pause` after a wait for it has begun, so that a host that stands still only makes waits longer.
/// Between calls, nobody tells when a stream comes to a wait: half of the pause counts there.
class DeviceWaits : public Captures {
 protected:
  DeviceWaits() {
    comm::set_device_clock([this](void* stream, std::uint64_t* at) {
      const Access written{at, sizeof *at, true};
      ASSERT_OK(
          enqueue(static_cast<cudaStream_t>(stream), "clock", std::span(&written, 1), [this, at] {
            *at =
                static_cast<std::uint64_t>(steady_clock::now().time_since_epoch() / nanoseconds(1));
            ++readings_;
            return cudaSuccess;
          }));
    });
  }
  void communicate(Gate& gate) { ASSERT_OK(enqueue(b, "communication", {}, gate.work())); }
  /// Stream a waits for the end of b.
  void wait(bool captured) {
    const cudaEvent_t done = new_event();
    ASSERT_OK(cudaEventRecord(done, b));
    waits_.wait(a, done, captured);
    ASSERT_OK(cudaEventDestroy(done));
  }
  static void open(Gate& gate, milliseconds pause) {
    std::this_thread::sleep_for(pause);
    gate.open();
  }
  /// A graph in which stream a waits for `pauses.size()` operations, launched.
  void launch_graph(const std::vector<milliseconds>& pauses) {
    std::vector<Gate> gates(pauses.size());
    begin();
    for (Gate& gate : gates) {
      follow(b, a);
      communicate(gate);
      wait(true);
    }
    end();
    EXPECT_EQ(0, seconds());  // nothing has run
    readings_ = 0;
    ASSERT_OK(launch(a));
    waits_.launched(events_->record(a));
    for (std::size_t k = 0; k < pauses.size(); ++k) {
      while (readings_ < 2 * k + 1) std::this_thread::yield();
      open(gates[k], pauses[k]);
    }
    ASSERT_OK(cudaStreamSynchronize(a));
    ASSERT_OK(cudaGraphExecDestroy(std::exchange(graph_, nullptr)));
  }
  double seconds() {
    EXPECT_OK(cudaStreamSynchronize(a));
    return waits_.take();
  }
  const std::shared_ptr<comm::EventPool> events_ = std::make_shared<comm::EventPool>();
  comm::DeviceWaits waits_;
  std::atomic<std::size_t> readings_ = 0;  ///< of the clock, by the graph that was launched last
};

TEST_F(DeviceWaits, AreTakenOnceTheyHaveEnded) {
  for (int k = 0; k < 3; ++k) {
    Gate gate;
    communicate(gate);
    wait(false);
    if (k == 0) {
      EXPECT_EQ(0, waits_.take());
    }
    open(gate, milliseconds(20));
    ASSERT_OK(cudaStreamSynchronize(a));
  }
  EXPECT_GE(seconds(), 0.03);
  EXPECT_EQ(0, seconds());
}

TEST_F(DeviceWaits, OfStreamsBesideDoNotCount) {
  Gate gate;
  communicate(gate);
  {
    const comm::WaitsBeside not_counted;
    wait(false);
  }
  EXPECT_EQ(cudaErrorNotReady, cudaStreamQuery(a));  // it waits all the same
  open(gate, milliseconds(20));
  EXPECT_EQ(0, seconds());
}

TEST_F(DeviceWaits, OfAGraphAreThoseOfItsLaunch) {
  launch_graph({milliseconds(20), milliseconds(30)});
  EXPECT_GE(seconds(), 0.05);
  EXPECT_EQ(0, seconds());
}

TEST_F(DeviceWaits, OfAnotherGraphCountAlone) {
  launch_graph({milliseconds(300)});
  const double before = seconds();
  EXPECT_GE(before, 0.3);
  waits_.forget_captured();
  double least = before;  // of a machine that may stand still
  for (int k = 0; k < 5; ++k) {
    launch_graph({milliseconds(1)});
    least = std::min(least, seconds());
    waits_.forget_captured();
  }
  EXPECT_LT(least, before);
}

TEST_F(DeviceWaits, AreCollectedWhileTheHooksLive) {
  std::string told;
  {
    const auto tell = [&told](char what) { return [&told, what] { told += what; }; };
    const comm::DeviceHooks one({tell('b'), tell('a'), tell('l'), tell('c')});
    const comm::DeviceHooks other({tell('b'), tell('a'), tell('l'), tell('c')});
    comm::note_graph_capture();
    comm::note_graph_abandoned();
    comm::note_graph_launch();
    comm::collect_device_waits();
  }
  comm::collect_device_waits();
  EXPECT_EQ("bbaallcc", told);
}

}  // namespace
}  // namespace tessera::sim
