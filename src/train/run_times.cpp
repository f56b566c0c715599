// SPDX-License-Identifier: Apache-2.0
#include "run_times.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "tessera/comm/device.hpp"
#include "tessera/comm/latest_rank.hpp"

namespace tessera::train {
namespace {

using metrics::Phase;

constexpr std::array<std::pair<Phase, std::string_view>, 6> kRows{
    {{Phase::forward, "forward"},
     {Phase::backward, "backward"},
     {Phase::communication, "gradient sums"},
     {Phase::optimizer, "optimizer"},
     {Phase::device, "waiting for the GPU"},
     {Phase::data, "data"}}};

/// Parts of an axis and its ends count as the axis.
std::string axis_of(const comm::Communicator& communicator) {
  const std::string& axis = communicator.axis();
  if (axis == mesh::kEmbedding || axis == mesh::kUpstream) return "pp";
  constexpr std::string_view kPart = " neighbours of ";
  const std::size_t part = axis.find(kPart);
  return part == std::string::npos ? axis : axis.substr(part + kPart.size());
}

}  // namespace

metrics::Times waits_of(const mesh::DeviceMesh& mesh) {
  metrics::Times waits;
  mesh.visit([&](const comm::Communicator& communicator) {
    metrics::add_seconds(waits, axis_of(communicator), communicator.traffic().exposed_seconds);
  });
  return waits;
}

void RunTimes::begin_step() {
  comm::collect_device_waits();  // of validation and other work between steps
  step_began_ = metrics::monotonic_seconds();
  waits_before_ = now();
}

void RunTimes::end_step() {
  // A GPU may wait for other ranks while the host does something else than wait for the GPU.
  for (const auto& [phase, name] : kRows)
    metrics::add_seconds(phases_, name, std::max(0.0, trainer_.timer().seconds(phase)));
  waited_ = 0;
  for (const auto& [axis, seconds] : now()) {
    const auto before = std::ranges::find(waits_before_, axis, &metrics::Times::value_type::first);
    const double more = seconds - (before == waits_before_.end() ? 0 : before->second);
    metrics::add_seconds(waits_, std::string(metrics::kWaitingIn) + axis, more);
    waited_ += more;
  }
  const double seconds = metrics::monotonic_seconds() - step_began_;
  const comm::LatestRank last = comm::latest_rank(trainer_.mesh().control(), waited_);
  late_.step(last.rank, last.seconds, seconds);
}

void RunTimes::spent(std::string_view on, double seconds) {
  metrics::add_seconds(outside_, on, seconds);
}

metrics::Times RunTimes::rows() const {
  metrics::Times rows = phases_;
  rows.insert(rows.end() - (rows.empty() ? 0 : 1), waits_.begin(), waits_.end());
  rows.insert(rows.end(), outside_.begin(), outside_.end());
  double rest = metrics::monotonic_seconds() - began_;
  for (const auto& [name, seconds] : rows) rest -= seconds;
  rows.emplace_back("rest", std::max(0.0, rest));
  return rows;
}

std::vector<metrics::Times> RunTimes::of_ranks(comm::Communicator& control) const {
  std::vector<metrics::Times> all;
  for (const std::string& text : comm::all_gather_strings(control, metrics::text_of(rows())))
    all.push_back(metrics::times_of(text));
  return all;
}

}  // namespace tessera::train
