// SPDX-License-Identifier: Apache-2.0
#include "plan_run.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tessera/base/error.hpp"
#include "tessera/metrics/human.hpp"
#include "tessera/plan/failures.hpp"

namespace tessera::app {
namespace {

constexpr double kJoulesPerMegawattHour = 3.6e9;

double seconds_between_failures(const RunRequest& request, const plan::JobPlan& plan, int gpus) {
  if (request.mtbf_hours) return *request.mtbf_hours * 3600 / gpus;
  if (plan.save.mtbf_hours > 0) return plan.save.mtbf_hours * 3600;
  return plan::usual_seconds_between_failures(gpus);
}

std::string energy_text(double joules) {
  const double hours = joules / kJoulesPerMegawattHour;
  if (hours >= 1000) return fmt::format("{:.1f} GWh", hours / 1000);
  return hours >= 1 ? fmt::format("{:.1f} MWh", hours) : fmt::format("{:.2f} kWh", 1000 * hours);
}

std::string steps_text(std::int64_t steps) {
  return steps == 1 ? "after each step" : fmt::format("each {} steps", steps);
}

}  // namespace

double amount_in(const std::string& flag, const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  const std::string unit(stop, end);
  double factor = unit.empty() ? 1 : 0;
  for (const auto& [name, scale] : {std::pair{"K", 1e3}, {"M", 1e6}, {"B", 1e9}, {"T", 1e12}})
    if (unit == name) factor = scale;
  require(error == std::errc() && std::isfinite(value) && value * factor > 0, ExitCode::usage,
          "{} must be a number above 0, such as 2.5, 300B or 15T, not '{}'", flag, text);
  return value * factor;
}

RunForecast forecast_of(const RunRequest& request, const plan::JobPlan& plan,
                        const planner::Workload& work, const planner::Price& price,
                        const planner::Machine& machine, const planner::Stack& stack) {
  RunForecast out;
  const double step = price.step_seconds;
  out.tokens = request.tokens.value_or(static_cast<double>(plan.run.steps) * work.step_tokens());
  out.saves = planner::saves_of(work, machine, stack, plan.save.waits, step);
  out.between_failures = seconds_between_failures(request, plan, work.gpus);
  out.best_steps_between_saves =
      planner::steps_between_saves(out.saves, step, out.between_failures);
  out.own_interval = plan.save.enabled && plan.save.interval > 0;
  out.steps_between_saves = out.own_interval ? plan.save.interval : out.best_steps_between_saves;
  const auto share = [&](std::int64_t steps) {
    return planner::goodput(out.saves, static_cast<double>(steps) * step, out.between_failures);
  };
  out.goodput = share(out.steps_between_saves);
  out.best_goodput = share(out.best_steps_between_saves);
  out.cost = planner::run_cost(work, price, machine, out.tokens, out.goodput);
  constexpr double kLeastGoodput = 0.001;
  out.finishes = out.goodput >= kLeastGoodput;
  out.unit = planner::unit_of(machine);
  if (request.dollars) out.dollars = *request.dollars * out.cost.gpu_hours;
  return out;
}

namespace {

std::string cost_text(const RunForecast& run) {
  using metrics::human_count;
  if (!run.finishes) return "never finishes, as failures come too often";
  std::string text = fmt::format("{}, {} {}-hours", metrics::human_duration(run.cost.seconds),
                                 human_count(run.cost.gpu_hours), run.unit);
  if (run.cost.joules > 0)
    text += fmt::format(", {}{}", energy_text(run.cost.joules),
                        run.cost.with_nodes ? "" : " of GPUs alone");
  if (run.dollars) text += ", $" + human_count(*run.dollars);
  return text;
}

}  // namespace

std::string run_text(const RunForecast& run) {
  using metrics::human_duration;
  std::string text =
      fmt::format("run         {} tokens: {}", metrics::human_count(run.tokens), cost_text(run));
  text += fmt::format(
      "\ngoodput     {:.1f} %, with a failure every {}: a checkpoint of {} {} takes {}, and a "
      "restart {}\n",
      100 * run.goodput, human_duration(run.between_failures),
      metrics::human_bytes(std::llround(run.saves.bytes)), steps_text(run.steps_between_saves),
      human_duration(run.saves.cost), human_duration(run.saves.restart));
  if (run.own_interval)
    text += fmt::format("            {:.1f} % with checkpoint.interval = \"auto\": {}\n",
                        100 * run.best_goodput, steps_text(run.best_steps_between_saves));
  return text;
}

nlohmann::json run_json(const RunForecast& run) {
  nlohmann::json out{{"tokens", run.tokens},
                     {"goodput", run.goodput},
                     {"steps_between_saves", run.steps_between_saves},
                     {"goodput_of_auto", run.best_goodput},
                     {"steps_between_saves_of_auto", run.best_steps_between_saves},
                     {"seconds_between_failures", run.between_failures},
                     {"checkpoint_gib", run.saves.bytes / planner::kGiB},
                     {"save_seconds", run.saves.cost},
                     {"durable_seconds", run.saves.durable},
                     {"restart_seconds", run.saves.restart}};
  out["finishes"] = run.finishes;
  if (!run.finishes) return out;
  out["seconds"] = run.cost.seconds;
  out["gpu_hours"] = run.cost.gpu_hours;
  if (run.cost.joules > 0) {
    out["megawatt_hours"] = run.cost.joules / kJoulesPerMegawattHour;
    out["power_of"] = run.cost.with_nodes ? "nodes" : "gpus";
  }
  if (run.dollars) out["dollars"] = *run.dollars;
  return out;
}

}  // namespace tessera::app
