// SPDX-License-Identifier: Apache-2.0
#include "hang_watch.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include "tessera/base/atomic_file.hpp"
#include "tessera/base/log.hpp"
#include "tessera/comm/call_trace.hpp"
#include "tessera/comm/failure.hpp"

namespace tessera::train {
namespace {

using comm::Watchdog;
using std::chrono::seconds;

constexpr seconds kNotice{45};
constexpr seconds kOtherNodes{10};  ///< for the traces of other nodes
/// Of each rank: enough to see who is missing where, whatever a file may hold.
constexpr std::size_t kTracedCalls = 100;

class HangWatch {
 public:
  HangWatch(comm::World& world, const plan::CommPlan& plan) : world_(world), plan_(plan) {}

  /// One line, while the job may still continue.
  void notice(const Error& report) const {
    if (!comm::failure_on_node().empty()) return;
    std::vector<comm::CallTrace> own = of_this_node();
    if (gather() == Watchdog::Traces::by_another) return;
    const std::vector<std::string> lines = culprits(std::move(own));
    log::error("{}", lines.empty() ? report.what() : fmt::format("{}", fmt::join(lines, "\n")));
  }

  void end_job(const Error& report) const {
    leave_time_to_the_failed();
    if (report.code() != ExitCode::communication) end_failed(report);
    std::vector<comm::CallTrace> own = of_this_node();
    if (gather() == Watchdog::Traces::by_another)
      std::this_thread::sleep_for(kOtherNodes + seconds(2));
    const std::vector<std::string> lines = culprits(std::move(own));
    const std::string text =
        fmt::format("{}{}{}", fmt::join(lines, "\n"), lines.empty() ? "" : "\n", report.what());
    log::error("{}", text);
    write_report(text);
    world_.abort(static_cast<int>(report.code()));
  }

  /// This rank itself has failed, and its main thread may never learn of it: it reports first.
  [[noreturn]] void end_failed(const Error& report) const {
    comm::note_failure(report.what());
    log::error("rank {} on {}: {}", world_.rank(), world_.host(), report.what());
    leave_traces();
    world_.abort(static_cast<int>(report.code()));
  }

  /// For all ranks of this node: the one that is at fault may be in no state to. A job that hangs
  /// ends whether or not its disk takes this.
  void leave_traces() const {
    if (limit() == 0) return;
    std::error_code ignored;
    std::filesystem::create_directories(folder(), ignored);
    for (const comm::CallTrace& trace : comm::traces_of_node(world_.size(), limit())) {
      try {
        write_file_atomically(file_of(trace.rank, ".json"), comm::text_of({&trace, 1}));
      } catch (const Error& error) {
        log::warning("{}", error.what());
      }
    }
  }

 private:
  /// A rank that has failed ends the job, with its own code, as soon as it knows that it is alone.
  static void leave_time_to_the_failed() {
    constexpr std::chrono::milliseconds kLook{100};
    constexpr int kLooks = 120;
    for (int i = 0; i < kLooks && !comm::failure_on_node().empty(); ++i)
      std::this_thread::sleep_for(kLook);
  }

  Watchdog::Traces gather() const {
    return Watchdog::leave_traces_everywhere([this] { leave_traces(); }, kOtherNodes);
  }

  /// To be asked first: a rank that was stopped continues when another node ends the job.
  std::vector<comm::CallTrace> of_this_node() const {
    return comm::traces_of_node(world_.size(), kTracedCalls);
  }

  /// By `traces` of this node, and what the ranks of the others have left just now.
  std::vector<std::string> culprits(std::vector<comm::CallTrace> traces) const {
    const double now = traces.front().unix_seconds;
    constexpr double kOld_seconds = 30;
    const double start = traces.front().job_unix_seconds;
    for (comm::CallTrace& other : comm::traces_of_last_hang(folder(), start)) {
      const auto same = [&](const comm::CallTrace& trace) { return trace.rank == other.rank; };
      if (std::ranges::none_of(traces, same) && now - other.unix_seconds < kOld_seconds &&
          other.rank < world_.size())
        traces.push_back(std::move(other));
    }
    return comm::who_holds_up(traces);
  }

  void write_report(const std::string& text) const {
    if (limit() == 0) return;
    std::ofstream file(file_of(world_.rank(), ""));
    file << text << "\n\nlast calls, newest last:\n"
         << last_lines(Watchdog::recent_calls(), limit());
  }

  /// The last `count` of some lines.
  static std::string_view last_lines(std::string_view text, std::size_t count) {
    std::size_t begin = text.size();
    for (std::size_t i = 0; i < count && begin > 0; ++i) begin = text.rfind('\n', begin - 2) + 1;
    return text.substr(begin);
  }

  std::size_t limit() const {
    return std::min(kTracedCalls, static_cast<std::size_t>(plan_.traced_calls));
  }
  const std::filesystem::path& folder() const { return plan_.traces_folder; }
  std::filesystem::path file_of(int rank, const char* extension) const {
    return folder() / fmt::format("{}{}{}", plan_.traces_prefix, rank, extension);
  }

  comm::World& world_;
  const plan::CommPlan& plan_;
};

}  // namespace

void watch_for_hangs(std::optional<comm::Watchdog>& watchdog, comm::World& world,
                     const plan::CommPlan& plan, std::int64_t limit_seconds,
                     std::function<std::optional<Error>()> look) {
  const HangWatch watch(world, plan);
  const seconds limit(limit_seconds);
  Watchdog::Also also;
  also.leave_traces = [watch] { watch.leave_traces(); };
  also.look = std::move(look);
  if (limit > kNotice) {
    also.notice_after = kNotice;
    also.notice = [watch](const Error& report) { watch.notice(report); };
  }
  watchdog.reset();
  watchdog.emplace(
      limit, world.rank(), [watch](const Error& report) { watch.end_job(report); },
      std::move(also));
}

}  // namespace tessera::train
