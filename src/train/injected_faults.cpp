// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/injected_faults.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <limits>
#include <thread>
#include <utility>

#include "wrong_calls.hpp"

namespace tessera::train {
namespace {

using Kind = plan::InjectedFault::Kind;

/// For the kinds from `freeze` on.
constexpr std::array kOfCalls{WrongCalls::Kind::freeze, WrongCalls::Kind::die,
                              WrongCalls::Kind::memory, WrongCalls::Kind::skip,
                              WrongCalls::Kind::shape,  WrongCalls::Kind::order};

/// The first gradient of which this rank has a part.
void make_nan(const parallel::Params& params) {
  const auto some =
      std::ranges::find_if(params, [](const auto* param) { return param->gradient.numel() > 0; });
  if (some != params.end()) (*some)->gradient.fill_(std::numeric_limits<double>::quiet_NaN());
}

/// The loss of the next step jumps on every kind of processor: the output layer's part of this rank
/// alone changes each logit by some factor.
void spoil(const std::vector<parallel::ShardGroup*>& groups) {
  for (const parallel::ShardGroup* group : groups) group->flat_master().mul_(64);
}

constexpr std::chrono::milliseconds kDelay(40);  ///< of a slow rank, in each step

/// More than any machine has.
void exhaust_memory(at::Device device) {
  at::empty({std::int64_t{1} << 50}, at::TensorOptions(at::kByte).device(device));
}

void flip_bit(const at::Tensor& values) { values.view(at::kInt).narrow(0, 0, 1).bitwise_xor_(1); }

}  // namespace

InjectedFaults::InjectedFaults(std::vector<plan::InjectedFault> faults, at::Device device)
    : device_(device),
      entries_(std::move(faults)),
      calls_(std::make_unique<WrongCalls>([device] { exhaust_memory(device); })) {}

InjectedFaults::~InjectedFaults() = default;

mesh::DeviceMesh::Decorate InjectedFaults::decorate() {
  if (std::ranges::none_of(entries_,
                           [](const plan::InjectedFault& entry) { return entry.call > 0; }))
    return {};
  return [this](std::unique_ptr<comm::Communicator> inner) {
    return calls_->around(std::move(inner));
  };
}

void InjectedFaults::arm(std::int64_t step, int rank) {
  for (const plan::InjectedFault& entry : entries_)
    if (entry.step == step && entry.rank == rank && entry.call > 0)
      calls_->arm(
          kOfCalls[static_cast<std::size_t>(entry.kind) - static_cast<std::size_t>(Kind::freeze)],
          entry.call, fmt::format("the fault of rank {} in step {}", rank, step));
}

void InjectedFaults::strike(std::int64_t step, int rank, parallel::Stages& stages) {
  const auto now = [&](const plan::InjectedFault& entry) {
    return entry.kind == Kind::slow ? entry.step <= step : entry.step == step;
  };
  for (const plan::InjectedFault& entry : entries_) {
    if (!now(entry) || entry.rank != rank || entry.call > 0) continue;
    at::NoGradGuard no_grad;
    if (entry.kind == Kind::nan) make_nan(stages.trained_params());
    if (entry.kind == Kind::flip) flip_bit(stages.groups().front()->flat_master());
    if (entry.kind == Kind::spike) spoil(stages.groups());
    if (entry.kind == Kind::slow) std::this_thread::sleep_for(kDelay);
    if (entry.kind == Kind::freeze) std::raise(SIGSTOP);
    if (entry.kind == Kind::die) std::raise(SIGKILL);
    if (entry.kind == Kind::memory) exhaust_memory(device_);
  }
  std::erase_if(entries_, [&](const plan::InjectedFault& entry) {
    return now(entry) && entry.kind != Kind::slow;
  });
}

}  // namespace tessera::train
