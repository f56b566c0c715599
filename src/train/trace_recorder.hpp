// SPDX-License-Identifier: Apache-2.0
// What this rank does while a step is traced: phases, units, waits, and calls of each axis.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/comm/hooks.hpp"
#include "tessera/metrics/meter.hpp"
#include "tessera/metrics/trace_file.hpp"

namespace tessera::train {

/// Times are those of metrics::monotonic_seconds(). Calls come from any thread, the rest from one.
class TraceRecorder final : public comm::Hook {
 public:
  TraceRecorder() : tracks_{"steps"} {}

  void step(std::int64_t number, double begin, double end);
  /// A piece of a phase has ended, and with it the unit that computed.
  void phase(metrics::Phase phase, double begin, double end);
  /// What was recorded; nothing is left.
  metrics::RankTrace take();

  void before(const comm::HookedCall& call) override;
  void waits(std::uint64_t ticket) noexcept override;
  void goes_on(std::uint64_t ticket) noexcept override;
  void after(std::uint64_t ticket, comm::CallEnd end) noexcept override;
  void comes_to(std::string_view unit, std::string_view pass) noexcept override;

 private:
  struct Call {
    std::string axis;
    metrics::TraceSpan span;
  };
  void end_wait(double now);
  void end_unit(double now);
  int track_of(const std::string& axis);

  std::mutex mutex_;
  std::vector<std::string> tracks_;
  std::vector<metrics::TraceSpan> spans_;
  std::vector<double> ends_{0};          ///< of the last span of each track
  std::map<std::uint64_t, Call> calls_;  ///< in progress, by ticket
  std::optional<metrics::TraceSpan> unit_, wait_;
  std::uint64_t waited_for_ = 0;
};

}  // namespace tessera::train
