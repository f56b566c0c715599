// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan/injected_fault.hpp"

#include <algorithm>
#include <array>
#include <regex>
#include <string_view>

#include "tessera/base/error.hpp"

namespace tessera::plan {
namespace {

using Kind = InjectedFault::Kind;

constexpr std::array<std::string_view, 10> kKinds{"nan", "flip",   "spike", "slow",  "freeze",
                                                  "die", "memory", "skip",  "shape", "order"};

InjectedFault injected_fault(const std::string& text, int ranks, std::int64_t steps) {
  static const std::regex form("([1-9][0-9]{0,8}):([a-z]+):([0-9]{1,7})(?::([1-9][0-9]{0,8}))?");
  std::smatch parts;
  const bool good = std::regex_match(text, parts, form);
  const auto kind =
      good ? std::ranges::find(kKinds, std::string_view(parts[2].str())) : kKinds.end();
  require(kind != kKinds.end(), ExitCode::usage,
          "debug.inject_faults: '{}' is not STEP:KIND:RANK[:CALL] with KIND nan, flip, spike, "
          "slow, freeze, die, memory, skip, shape or order",
          text);
  const int rank = std::stoi(parts[3]);
  require(rank < ranks, ExitCode::usage, "debug.inject_faults: '{}' is for rank {} of {}", text,
          rank, ranks);
  InjectedFault fault{std::stoll(parts[1]), static_cast<Kind>(kind - kKinds.begin()), rank, 0};
  require(fault.step <= steps, ExitCode::usage,
          "debug.inject_faults: '{}' is for step {}, after the last one, training.steps = {}", text,
          fault.step, steps);
  if (parts[4].matched) fault.call = std::stoll(parts[4]);
  if (fault.call == 0 && fault.kind >= Kind::skip) fault.call = 1;
  require(fault.call == 0 || fault.kind >= Kind::freeze, ExitCode::usage,
          "debug.inject_faults: '{}' names a call, and {} does not apply to calls", text, *kind);
  return fault;
}

}  // namespace

std::vector<InjectedFault> injected_faults(const std::vector<std::string>& entries, int ranks,
                                           std::int64_t steps) {
  std::vector<InjectedFault> faults;
  for (const std::string& text : entries) faults.push_back(injected_fault(text, ranks, steps));
  return faults;
}

}  // namespace tessera::plan
