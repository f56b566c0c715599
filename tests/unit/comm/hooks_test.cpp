// SPDX-License-Identifier: Apache-2.0
// Hooks of communicators, and two that can be written with them.
#include "tessera/comm/hooks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "call_log.hpp"
#include "hook_list.hpp"
#include "tessera/base/error.hpp"

namespace tessera::comm {
namespace {

using testing::ElementsAre;

CallInfo call_number(std::uint64_t sequence) {
  return {sequence, 2, -1, Call::all_reduce, DType::f32, Op::sum, 0};
}

/// A hook for the time of a test.
template <class T>
class Registered {
 public:
  Registered() { add_hook(hook_); }
  ~Registered() { remove_hook(hook_); }
  Registered(const Registered&) = delete;
  T& operator*() { return *hook_; }
  T* operator->() { return hook_.get(); }

 private:
  std::shared_ptr<T> hook_ = std::make_shared<T>();
};

struct Recorder : Hook {
  std::vector<std::string> seen;
  void before(const HookedCall& call) override {
    seen.push_back(fmt::format("{} {} of {} {}/{}, reads {}", name_of(call.info.call),
                               call.info.sequence, call.axis, call.rank, call.size,
                               call.in.size()));
  }
  void waits(std::uint64_t) noexcept override { seen.emplace_back("waits"); }
  void goes_on(std::uint64_t) noexcept override { seen.emplace_back("goes on"); }
  void after(std::uint64_t, CallEnd end) noexcept override {
    seen.emplace_back(end == CallEnd::done ? "done" : "failed");
  }
  void before_abort(std::string_view why) noexcept override {
    seen.push_back("abort: " + std::string(why));
  }
};

/// Of what is sent from the host.
struct NanCheck : Hook {
  void before(const HookedCall& call) override {
    for (const Buffer& buffer : call.in) {
      if (buffer.dtype != DType::f32 || buffer.memory != Memory::host) continue;
      const auto* const values = static_cast<const float*>(buffer.data);
      for (std::int64_t i = 0; i < buffer.count; ++i)
        require(!std::isnan(values[i]), ExitCode::nonfinite, "{} {} of {} sends NaN",
                name_of(call.info.call), call.info.sequence, call.axis);
    }
  }
};

TEST(Hooks, SeeACallFromItsIssueToItsEnd) {
  Registered<Recorder> recorder;
  float values[2] = {1, 2};
  const Buffer in{values, 2, DType::f32, Memory::host};
  LoggedCall call(call_number(7), 1, 4, "tp", {}, -1, {&in, 1});
  call.waited_for();
  call.resumed();
  call.done();
  LoggedCall(call_number(8), 1, 4, "tp").failed();
  call_before_abort("out of memory");
  EXPECT_THAT(recorder->seen,
              ElementsAre("all_reduce 7 of tp 1/4, reads 1", "waits", "goes on", "done",
                          "all_reduce 8 of tp 1/4, reads 0", "failed", "abort: out of memory"));
}

TEST(Hooks, AreNotToldOfPartsOfACall) {
  Registered<Recorder> recorder;
  LoggedCall part;
  part.waited_for();
  part.done();
  EXPECT_THAT(recorder->seen, ElementsAre());
}

TEST(Hooks, AreCalledAsLongAsTheyAreRegistered) {
  auto recorder = std::make_shared<Recorder>();
  add_hook(recorder);
  remove_hook(recorder);
  LoggedCall(call_number(1), 0, 2, "tp").done();
  EXPECT_THAT(recorder->seen, ElementsAre());
}

/// What is refused is no call: the log does not have it.
TEST(Hooks, MayRefuseACall) {
  static CallPage page{};
  use_call_page(&page);
  {
    Registered<NanCheck> check;
    float values[2] = {1, NAN};
    const Buffer bad{values, 2, DType::f32, Memory::host}, good = bad.part(0, 1);
    LoggedCall(call_number(1), 0, 2, "tp", {}, -1, {&good, 1}).done();
    EXPECT_THROW(LoggedCall(call_number(2), 0, 2, "tp", {}, -1, {&bad, 1}), Error);
  }
  EXPECT_EQ(recent(page, 100).size(), 1u);
  use_call_page(nullptr);
}

}  // namespace
}  // namespace tessera::comm
