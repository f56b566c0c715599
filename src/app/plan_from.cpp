// SPDX-License-Identifier: Apache-2.0
#include "plan_from.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>

#include "plan_data.hpp"
#include "tessera/base/atomic_file.hpp"
#include "tessera/metrics/meter.hpp"
#include "tessera/planner/refinement.hpp"
#include "tessera/planner/run_figures.hpp"
#include "tessera/report/run.hpp"

namespace tessera::app {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLeastSteps = 3, kMostSteps = 50;

/// Means of the last steps of the last attempt. Waiting has no axes there, and a host's memory is
/// that of its process.
metrics::RunFigures figures_in(const report::TrainingRun& run) {
  const auto first = std::ranges::find_if(run.records, [&](const metrics::StepRecord& record) {
    return record.step >= run.attempts.back().first_step;
  });
  report::TrainingRun last{run.folder, run.name, {first, run.records.end()}, {}, {}, ""};
  require(last.records.size() >= kLeastSteps, ExitCode::usage,
          "{} has {} steps since it was started last; {} are needed", run.folder.string(),
          last.records.size(), kLeastSteps);
  if (last.records.size() > kMostSteps)
    last.records.erase(last.records.begin(), last.records.end() - kMostSteps);
  metrics::Window seconds;
  for (const metrics::StepRecord& record : last.records) seconds.add(record.step_seconds);
  metrics::RunFigures out{seconds.median(), 0, {}};
  for (const auto& [column, part] : {std::pair{"time/forward", "forward"},
                                     {"time/backward", "backward"},
                                     {"time/optimizer", "optimizer"},
                                     {"comm/exposed_seconds", "waiting in all axes"}}) {
    double sum = 0;
    for (const report::Point& point : report::column(last, column)) sum += point.y;
    metrics::add_seconds(out.parts, part, sum / static_cast<double>(last.records.size()));
  }
  return out;
}

/// A run, as the planner prices it.
struct PricedRun {
  report::TrainingRun run;
  plan::JobPlan plan;
  planner::Machine machine;
  planner::Stack stack;
  planner::Workload work;
  metrics::Prediction prediction;

  explicit PricedRun(const PlanRequest& request)
      : run(report::read_run(request.from)),
        plan(plan_of(run)),
        machine(planner::machine_of(machine_name(request), ranks_on_node())),
        stack(planner::load_stack(request.stack.empty() ? planner::stack_of(machine)
                                                        : request.stack)),
        work(planner::workload_of(plan, stack)),
        prediction{planner::words_of(machine),
                   planner::figures_of(planner::price(work, machine, stack), machine),
                   run.prediction ? run.prediction->measured : figures_in(run)} {}

 private:
  static plan::JobPlan plan_of(const report::TrainingRun& run) {
    require(!run.attempts.empty(), ExitCode::usage,
            "{} has no run.json, so that its number of ranks is not known", run.folder.string());
    config::Resolved job = config::resolve({(run.folder / "config.toml").string()});
    name_data(job.job);
    return plan::plan_job(job, run.attempts.back().ranks,
                          run.prediction ? run.prediction->vocabulary : 0);
  }

  std::string machine_name(const PlanRequest& request) const {
    if (!request.machine.empty()) return request.machine;
    const fs::path recorded = run.folder / metrics::kMachineFile;
    if (std::error_code ignored; fs::exists(recorded, ignored)) return recorded.string();
    const config::Resolved job = config::resolve({(run.folder / "config.toml").string()});
    require(job.job.job.machine.has_value(), ExitCode::usage,
            "{} does not say on which machine it ran; add --machine NAME", run.folder.string());
    return *job.job.job.machine;
  }

  int ranks_on_node() const {
    const metrics::Attempt& last = run.attempts.back();
    return std::max(1, last.ranks / std::max(1, static_cast<int>(last.hosts.size())));
  }
};

std::string assumption_of(const std::string& part) {
  const std::optional<planner::Rate> rate = planner::rate_of(part);
  return rate ? planner::name_of(*rate) : "no value of the machine";
}

bool at_bound(double factor) {
  return std::abs(std::log(factor)) > 0.99 * std::log(planner::kMostCorrected);
}

std::string words_of(const std::vector<planner::Correction>& corrections) {
  std::vector<std::string> words;
  for (const auto& [rate, factor] : corrections)
    words.push_back(fmt::format("{} x {:.3g}{}", planner::name_of(rate), factor,
                                at_bound(factor) ? " (the bound)" : ""));
  return words.empty() ? "no value" : fmt::format("{}", fmt::join(words, ", "));
}

/// "1003 ms of a step predicted, -0.2 %"
std::string step_words(double seconds, const metrics::RunFigures& measured) {
  return fmt::format("{:.4g} ms of a step predicted, {:+.1f} %", 1e3 * seconds,
                     100 * (seconds / measured.step_seconds - 1));
}

/// Returns the price with the numbers that are in the file, which are rounded.
double write_machine(const PricedRun& of, const planner::Refinement& found,
                     const std::string& file) {
  const metrics::RunFigures& measured = of.prediction.measured;
  const std::vector<std::string> notes{
      fmt::format("Refined by tessera plan --from {}, a run of {}", of.run.folder.string(),
                  of.run.attempts.back().started),
      fmt::format("from {}: {}", of.machine.name, words_of(found.corrections)),
      fmt::format("Before: {}; {:.4g} ms measured",
                  step_words(of.prediction.predicted.step_seconds, measured),
                  1e3 * measured.step_seconds)};
  write_file_atomically(
      file, planner::corrected_file(planner::file_text_of(of.machine), found.corrections, notes));
  const int ranks = of.machine.host ? of.machine.nvlink_domain : 1;
  return planner::price(of.work, planner::machine_of(file, ranks), of.stack).step_seconds;
}

std::string text_of(const PricedRun& of) {
  std::string text =
      fmt::format("run         {}, started {}: {} on {} ranks ({})\n", of.run.folder.string(),
                  of.run.attempts.back().started, of.work.model.name, of.run.attempts.back().ranks,
                  of.run.attempts.back().mesh);
  text += fmt::format("machine     {}\n            {:<22}{:>12}{:>12}\n", of.prediction.of, "",
                      "predicted", "measured");
  for (const auto& rows : {overview(of.prediction), part_rows(of.prediction)})
    for (const metrics::PredictionRow& row : rows)
      text += fmt::format("            {:<22}{:>12} {:>11}{:>9}\n", row.name, row.predicted,
                          row.measured, row.difference);
  const std::string part = part_off_most(of.prediction);
  if (part.empty()) return text;
  return text + fmt::format("off most    {}: {}\n", part, assumption_of(part));
}

nlohmann::json json_of(const metrics::RunFigures& figures) {
  nlohmann::json parts = nlohmann::json::object();
  for (const auto& [name, seconds] : figures.parts) parts[name] = seconds;
  return {{"step_seconds", figures.step_seconds},
          {"memory_gib", static_cast<double>(figures.memory_bytes) / planner::kGiB},
          {"parts_seconds", parts}};
}

nlohmann::json json_of(const PricedRun& of, const planner::Refinement& found, double seconds) {
  nlohmann::json factors = nlohmann::json::object();
  for (const auto& [rate, factor] : found.corrections) factors[planner::name_of(rate)] = factor;
  const std::string part = part_off_most(of.prediction);
  return {{"run", of.run.folder.string()},
          {"machine", of.machine.name},
          {"predicted", json_of(of.prediction.predicted)},
          {"measured", json_of(of.prediction.measured)},
          {"off_most", {{"part", part}, {"assumption", assumption_of(part)}}},
          {"refined", {{"factors", factors}, {"step_seconds", seconds}}}};
}

}  // namespace

int plan_from(const PlanRequest& request) {
  const PricedRun of(request);
  const planner::Refinement found =
      planner::refine(of.work, of.machine, of.stack, of.prediction.measured);
  const double seconds =
      request.out.empty() ? found.price.step_seconds : write_machine(of, found, request.out);
  if (request.json) {
    std::cout << json_of(of, found, seconds).dump(2) << '\n';
    return 0;
  }
  std::cout << text_of(of)
            << fmt::format("refined     {}: {}\n", words_of(found.corrections),
                           step_words(seconds, of.prediction.measured));
  if (!request.out.empty()) std::cout << fmt::format("wrote       {}\n", request.out);
  return 0;
}

}  // namespace tessera::app
