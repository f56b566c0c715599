// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/injected_faults.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <limits>
#include <regex>
#include <string_view>

#include "tessera/base/error.hpp"
#include "wrong_calls.hpp"

namespace tessera::train {
namespace {

/// Those from `freeze` on may strike a call.
constexpr std::array<std::string_view, 9> kKinds{"nan",    "flip", "spike", "freeze", "die",
                                                 "memory", "skip", "shape", "order"};
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

/// More than any machine has.
void exhaust_memory(at::Device device) {
  at::empty({std::int64_t{1} << 50}, at::TensorOptions(at::kByte).device(device));
}

void flip_bit(const at::Tensor& values) { values.view(at::kInt).narrow(0, 0, 1).bitwise_xor_(1); }

}  // namespace

InjectedFaults::InjectedFaults(const std::vector<std::string>& entries, int world,
                               at::Device device)
    : device_(device), calls_(std::make_unique<WrongCalls>([device] { exhaust_memory(device); })) {
  static const std::regex form("([1-9][0-9]{0,8}):([a-z]+):([0-9]{1,7})(?::([1-9][0-9]{0,8}))?");
  for (const std::string& text : entries) {
    std::smatch parts;
    const bool good = std::regex_match(text, parts, form);
    const auto kind =
        good ? std::ranges::find(kKinds, std::string_view(parts[2].str())) : kKinds.end();
    require(kind != kKinds.end(), ExitCode::usage,
            "debug.inject_faults: '{}' is not STEP:KIND:RANK[:CALL] with KIND nan, flip, spike, "
            "freeze, die, "
            "memory, skip, shape or order",
            text);
    const int rank = std::stoi(parts[3]);
    require(rank < world, ExitCode::usage, "debug.inject_faults: '{}' is for rank {} of {}", text,
            rank, world);
    Entry entry{std::stoll(parts[1]), static_cast<Kind>(kind - kKinds.begin()), rank, 0};
    if (parts[4].matched) entry.call = std::stoll(parts[4]);
    if (entry.call == 0 && entry.kind >= Kind::skip) entry.call = 1;
    require(entry.call == 0 || entry.kind >= Kind::freeze, ExitCode::usage,
            "debug.inject_faults: '{}' names a call, and {} does not apply to calls", text,
            std::string(*kind));
    entries_.push_back(entry);
  }
}

InjectedFaults::~InjectedFaults() = default;

mesh::DeviceMesh::Decorate InjectedFaults::decorate() {
  if (std::ranges::none_of(entries_, [](const Entry& entry) { return entry.call > 0; })) return {};
  return [this](std::unique_ptr<comm::Communicator> inner) {
    return calls_->around(std::move(inner));
  };
}

void InjectedFaults::arm(std::int64_t step, int rank) {
  for (const Entry& entry : entries_)
    if (entry.step == step && entry.rank == rank && entry.call > 0)
      calls_->arm(
          kOfCalls[static_cast<std::size_t>(entry.kind) - static_cast<std::size_t>(Kind::freeze)],
          entry.call);
}

void InjectedFaults::strike(std::int64_t step, int rank, parallel::Stages& stages) {
  const auto now = [&](const Entry& entry) { return entry.step == step; };
  for (const Entry& entry : entries_) {
    if (!now(entry) || entry.rank != rank || entry.call > 0) continue;
    at::NoGradGuard no_grad;
    if (entry.kind == Kind::nan) make_nan(stages.trained_params());
    if (entry.kind == Kind::flip) flip_bit(stages.groups().front()->flat_master());
    if (entry.kind == Kind::spike) spoil(stages.groups());
    if (entry.kind == Kind::freeze) std::raise(SIGSTOP);
    if (entry.kind == Kind::die) std::raise(SIGKILL);
    if (entry.kind == Kind::memory) exhaust_memory(device_);
  }
  std::erase_if(entries_, now);
}

}  // namespace tessera::train
