// SPDX-License-Identifier: Apache-2.0
#include "execution.hpp"

#include <fmt/format.h>

#include <cstring>

#include "injection.hpp"
#include "names.hpp"

namespace tessera::sim::nccl {
namespace {

constexpr int kPoison = 0xFF;

/// The bytes of `out` that hold no input.
void poison(const Operation& o) {
  auto* out = static_cast<std::byte*>(o.out);
  const auto* in = static_cast<const std::byte*>(o.in);
  const std::size_t in_bytes = o.in_bytes(), out_bytes = o.out_bytes();
  const bool apart = in_bytes == 0 || in + in_bytes <= out || out + out_bytes <= in;
  if (apart) {
    if (out_bytes > 0) std::memset(out, kPoison, out_bytes);
  } else if (in >= out && in_bytes < out_bytes) {  // all_gather in place
    const auto before = static_cast<std::size_t>(in - out);
    std::memset(out, kPoison, before);
    std::memset(out + before + in_bytes, kPoison, out_bytes - before - in_bytes);
  }
}

bool run_all(const std::vector<Operation>& operations) {
  std::vector<const Operation*> moved;
  for (const Operation& o : operations) {
    if (transfers(o.kind))
      moved.push_back(&o);
    else if (!run_collective(o))
      return false;
  }
  return moved.empty() || run_transfers(moved);
}

/// A remote error of the collective that the environment names.
void inject(Communicator& communicator, const std::vector<Operation>& operations) {
  for (const Operation& o : operations)
    if (!transfers(o.kind) && is_injected("async"))
      communicator.fail(ncclRemoteError, fmt::format("{}: injected remote error in {}",
                                                     communicator.place(), describe(o.call())));
}

}  // namespace

Launch::~Launch() {
  if (number > 0) communicator().complete_launch();
}

void execute(const Launch& launch) {
  Communicator& c = launch.communicator();
  bool goes_on = c.await([&] { return c.is_turn_of(launch.number); });
  if (goes_on) {
    for (const Operation& o : launch.operations) poison(o);
    inject(c, launch.operations);
    goes_on = !c.stopped() && run_all(launch.operations);
  }
  if (!goes_on) c.hold_until_aborted();
}

}  // namespace tessera::sim::nccl
