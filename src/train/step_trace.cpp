// SPDX-License-Identifier: Apache-2.0
#include "step_trace.hpp"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "nvtx_ranges.hpp"
#include "tessera/base/atomic_file.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/text_file.hpp"
#include "tessera/comm/agreement.hpp"

namespace tessera::train {
namespace {

namespace fs = std::filesystem;

constexpr int kMostMerged = 64;

/// What to add to this rank's clock for the seconds since rank 0 called this. Ranks of one node
/// have one clock.
double align_clocks(comm::World& world) {
  constexpr int kBarriers = 9;
  std::vector<double> own, first(kBarriers);
  for (int i = 0; i < kBarriers; ++i) {
    world.control().barrier();
    own.push_back(metrics::monotonic_seconds());
  }
  if (world.rank() == 0) first = own;
  world.control().broadcast({first.data(), kBarriers, DType::f64}, 0).wait();
  const bool same = comm::broadcast_string(world.control(), world.host(), 0) == world.host();
  return (same ? 0 : metrics::clock_offset(first, own)) - first.front();
}

fs::path file_of(const fs::path& folder, int rank) {
  return folder / fmt::format("rank{}_trace.json", rank);
}

/// The events of a rank's file, without what stands around them.
std::string events_in(const fs::path& file) {
  const std::string text = read_text(file).value_or("");
  const std::size_t begin = text.find('\n') + 1, end = text.rfind("\n]");
  return end == std::string::npos ? "" : text.substr(begin, end - begin);
}

std::string merge(const fs::path& folder, int ranks) {
  std::vector<std::string> events;
  for (int rank = 0; rank < std::min(ranks, kMostMerged); ++rank)
    if (std::string text = events_in(file_of(folder, rank)); !text.empty())
      events.push_back(std::move(text));
  write_file_atomically(folder / "trace.json", metrics::trace_file(events));
  return "";
}

}  // namespace

StepTrace::StepTrace(const plan::TracePlan& plan, comm::World& world, Trainer& trainer)
    : plan_(plan),
      world_(world),
      trainer_(trainer),
      nvtx_(make_nvtx_ranges()),
      offset_(align_clocks(world)) {
  const at::Device device = trainer.stages().options().sharding.device;
  if (device.is_cuda()) device_.emplace(device);
  if (nvtx_) comm::add_hook(nvtx_);
}

StepTrace::~StepTrace() {
  stop();
  if (nvtx_) comm::remove_hook(nvtx_);
}

void StepTrace::begin_step(std::int64_t step) {
  if (!traced(step)) return;
  active_ = true;
  comm::add_hook(recorder_);
  if (device_) device_->begin_step();
  step_began_ = metrics::monotonic_seconds();
  trainer_.timer().observe([this](metrics::Phase phase, double begin, double end) {
    recorder_->phase(phase, std::max(begin, step_began_), end);
  });
}

void StepTrace::stop() {
  if (!active_) return;
  active_ = false;
  trainer_.timer().observe({});
  comm::remove_hook(recorder_);
  if (device_) device_->forget_step();
}

std::string StepTrace::end_step(std::int64_t step) {
  if (!active_) return "";
  const double ended =
      device_ ? device_->end_step(step, step_began_) : metrics::monotonic_seconds();
  stop();
  recorder_->step(step, step_began_, ended);
  return step % plan_.freq == 0 ? write(step) : "";
}

std::string StepTrace::write(std::int64_t step) {
  metrics::RankTrace trace = recorder_->take();
  trace.rank = world_.rank();
  trace.name = fmt::format("rank {} ({})", world_.rank(),
                           trainer_.mesh().layout().coord_name(trainer_.mesh().rank()));
  const std::string kernels = device_ ? device_->take(trace) : "";
  for (metrics::TraceSpan& span : trace.spans) span.begin += offset_, span.end += offset_;
  const fs::path folder = plan_.folder / fmt::format("iteration_{}", step);
  comm::on_all_ranks(world_.control(), [&] {
    std::error_code problem;
    fs::create_directories(folder, problem);
    require(!problem, ExitCode::environment,
            "cannot make the folder {} for traces ({}); set profiling.save_traces_folder",
            folder.string(), problem.message());
    write_file_atomically(file_of(folder, trace.rank),
                          metrics::trace_file({metrics::trace_events(trace)}));
    if (!kernels.empty())
      write_file_atomically(folder / fmt::format("rank{}_kernels.txt", trace.rank), kernels + "\n");
  });
  comm::on_rank_zero(world_.control(), [&] { return merge(folder, world_.size()); });
  return world_.rank() == 0 && device_ ? device_->for_log(kernels) : "";
}

}  // namespace tessera::train
