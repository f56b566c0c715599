// SPDX-License-Identifier: Apache-2.0
// tessera plan: the time and the memory of a job's step on a machine that is not here; no ranks, no
// GPU.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "command.hpp"
#include "plan_data.hpp"
#include "plan_from.hpp"
#include "plan_pictures.hpp"
#include "plan_request.hpp"
#include "plan_search.hpp"
#include "plan_traffic.hpp"
#include "tensor_commands.hpp"
#include "tensor_program.hpp"
#include "tessera/base/atomic_file.hpp"
#include "tessera/base/log.hpp"
#include "tessera/config/resolve.hpp"
#include "tessera/metrics/human.hpp"
#include "tessera/plan/job_plan.hpp"
#include "tessera/planner/automatic.hpp"
#include "tessera/planner/scaling.hpp"
#include "tessera/planner/variant_space.hpp"

namespace {

using tessera::ExitCode;
using tessera::app::Args;
namespace config = tessera::config;
namespace planner = tessera::planner;
using Request = tessera::app::PlanRequest;

using planner::kGiB;

/// A search may begin with a job that is legal where the one that is written is not.
std::optional<planner::LegalJob> start_of_search(const config::Reading& written,
                                                 const config::Reading& refused,
                                                 const Request& request) {
  if (!request.search || request.gpus < 1 || !written.problems.empty()) return std::nullopt;
  tessera::plan::Planner planner;
  auto start = planner::legal_on(written.resolved, request.gpus, planner);
  if (start)
    tessera::log::warning("{}\nthe search starts from the job with {}",
                          config::message_of(refused.problems), fmt::join(start->changes, ", "));
  return start;
}

tessera::plan::JobPlan plan_of(config::Reading& job, const Request& request) {
  const config::Reading written = job;
  auto plan = tessera::plan::Planner().plan(job, request.gpus, 0);
  if (!plan)
    if (auto start = start_of_search(written, job, request)) {
      job = written;
      job.resolved = std::move(start->job);
      plan = std::move(start->plan);
    }
  for (const std::string& choice : job.resolved.choices) tessera::log::info("{}", choice);
  for (const std::string& warning : job.resolved.warnings) tessera::log::warning("{}", warning);
  config::throw_if_wrong(job.problems);
  TESSERA_EXPECT(plan, "a job without problems has no plan");
  return *plan;
}

nlohmann::json as_json(const planner::Workload& work, const Request& request,
                       const planner::Machine& machine, const planner::Stack& stack,
                       const planner::Price& price) {
  nlohmann::json terms, exposed;
  for (const planner::MemoryTerm& term : planner::kMemoryTerms)
    terms[term.name] = price.memory.*term.bytes / kGiB;
  const planner::Exposed& waits = price.exposed;
  exposed = {
      {"tp", waits.tp}, {"cp", waits.cp}, {"ep", waits.ep}, {"pp", waits.pp}, {"dp", waits.dp}};
  return {{"machine", request.machine},
          {"stack", stack.name},
          {"gpus", work.gpus},
          {"tokens_per_second_per_gpu", price.tokens_per_second_per_gpu},
          {"step_seconds", price.step_seconds},
          {"mfu_full", price.mfu_full},
          {"mfu_causal", price.mfu_causal},
          {"bubble", price.bubble},
          {"exposed_seconds", exposed},
          {"memory_gib", price.memory.total() / kGiB},
          {"memory_terms_gib", terms},
          {"runtime_memory_gib", planner::runtime_bytes(machine) / kGiB},
          {"host_memory_gib", price.memory.on_host / kGiB},
          {"fits", price.fits}};
}

void print_time(const planner::Workload& work, const planner::Price& price,
                const planner::Machine& machine) {
  std::cout << fmt::format("step        {:.3f} s, {} tokens\n", price.step_seconds,
                           tessera::metrics::human_count(work.step_tokens()));
  std::cout << fmt::format(
      "speed       {:.0f} tokens/s a {}, MFU {:.1f} % (full attention), {:.1f} "
      "% (causal)\n",
      price.tokens_per_second_per_gpu, planner::unit_of(machine), 100 * price.mfu_full,
      100 * price.mfu_causal);
  if (work.pipeline.ranks() > 1)
    std::cout << fmt::format("bubble      {:.1f} %\n", 100 * price.bubble);
  double all = 0;
  for (const auto& [name, seconds] : price.seconds) all += seconds;
  std::cout << "time        ";
  const char* separator = "";
  for (const auto& [name, seconds] : price.seconds) {
    if (seconds < 0.005 * all) continue;
    std::cout << separator << fmt::format("{} {:.1f} %", name, 100 * seconds / all);
    separator = ", ";
  }
  std::cout << '\n';
}

void print_memory(const planner::Price& price, const planner::Machine& machine) {
  const bool small = price.memory.total() < kGiB;
  const double unit = small ? kGiB / 1024 : kGiB;
  std::cout << fmt::format("memory      {:.1f} {} of {:.1f}: ", price.memory.total() / unit,
                           small ? "MiB" : "GiB", machine.memory_bytes / unit);
  const char* separator = "";
  for (const planner::MemoryTerm& term : planner::kMemoryTerms) {
    const double amount = price.memory.*term.bytes / unit;
    if (amount < 0.05) continue;
    std::cout << separator << fmt::format("{} {:.1f}", term.name, amount);
    separator = ", ";
  }
  std::cout << '\n';
  if (!price.fits)
    std::cout << fmt::format("            DOES NOT FIT with the {:.1f} GiB of {}\n",
                             planner::runtime_bytes(machine) / kGiB,
                             machine.host ? "LibTorch and MPI" : "CUDA, NCCL and libraries");
  if (price.memory.on_host > 0)
    std::cout << fmt::format("            and {:.1f} GiB of the host for each GPU: activations\n",
                             price.memory.on_host / kGiB);
}

/// The variant as a job: its data are those of the file, which planning does not need.
void write_job(const std::string& path, const tessera::app::Advice& advice,
               const config::JobConfig& given, const std::string& machine) {
  tessera::require(!advice.found.best.empty(), ExitCode::usage,
                   "no variant fits: {} is not written", path);
  config::Resolved job = advice.found.best.front().job;
  job.job.training.dataset_path = given.training.dataset_path;
  job.job.validation.enable = given.validation.enable;
  if (given.job.machine.value_or(planner::kUsualMachine) != machine) job.job.job.machine = machine;
  tessera::write_file_atomically(path, job.to_toml());
}

/// What Tessera emulates, and the price does not know.
std::vector<std::string> emulated_products(const tessera::plan::JobPlan& plan,
                                           const planner::Stack& stack) {
  return stack.name.starts_with("tessera") ? plan.linears.emulated_products(plan.precision.compute)
                                           : std::vector<std::string>();
}

void print(const planner::Workload& work, const planner::Price& price,
           const planner::Machine& machine, const planner::Stack& stack,
           const std::vector<std::string>& emulated) {
  std::cout << fmt::format("{}, {} parameters, on {} x {}, {}\n", work.model.name,
                           tessera::metrics::human_count(work.model.params()), work.gpus,
                           machine.name, stack.name);
  print_time(work, price, machine);
  print_memory(price, machine);
  for (const std::string& what : emulated)
    std::cout << "note        products of " << what
              << " are emulated: steps take longer than this\n";
}

/// What others claim of meshes: speed and memory against FSDP alone, and how speed scales.
struct Compared {
  std::optional<planner::Price> plain;
  std::optional<planner::ScalingPoint> fewest;
};

Compared compared(const config::Resolved& job, const planner::Workload& work,
                  const planner::Machine& machine, const planner::Stack& stack) {
  if (machine.host || work.gpus == 1) return {};
  return {planner::plain_fsdp(job, work.gpus, machine, stack),
          planner::on_fewest_gpus(job, work.gpus, machine, stack)};
}

void print(const Compared& with, const planner::Price& price, const planner::Machine& machine) {
  const auto more = [](double own, double other) { return 100 * (own / other - 1); };
  const double speed = price.tokens_per_second_per_gpu;
  if (with.plain)
    std::cout << fmt::format(
        "plain FSDP  {:.0f} tokens/s a {}, {:.1f} GiB{}: this mesh has {:+.0f} % speed, {:+.0f} % "
        "memory\n",
        with.plain->tokens_per_second_per_gpu, planner::unit_of(machine),
        with.plain->memory.total() / kGiB, with.plain->fits ? "" : ", which do not fit",
        more(speed, with.plain->tokens_per_second_per_gpu),
        more(price.memory.total(), with.plain->memory.total()));
  if (with.fewest)
    std::cout << fmt::format("scaling     {:.1f} % of the speed a {} on {}\n",
                             100 * speed / with.fewest->price.tokens_per_second_per_gpu,
                             planner::unit_of(machine), with.fewest->gpus);
}

void add_json(nlohmann::json& out, const Compared& with, const planner::Price& price) {
  if (with.plain)
    out["plain_fsdp"] = {{"tokens_per_second_per_gpu", with.plain->tokens_per_second_per_gpu},
                         {"memory_gib", with.plain->memory.total() / kGiB},
                         {"fits", with.plain->fits}};
  if (with.fewest)
    out["scaling"] = {{"gpus", with.fewest->gpus},
                      {"efficiency", price.tokens_per_second_per_gpu /
                                         with.fewest->price.tokens_per_second_per_gpu}};
}

std::string picture_file(const Request& request, const tessera::app::PicturedJob& job,
                         const planner::Price& price) {
  return request.out.ends_with(".html") ? tessera::app::picture_page(request.picture, job, price)
                                        : tessera::app::picture_of(request.picture, job);
}

void tell_written(const Request& request, const std::string& file) {
  if (!request.json) std::cout << "wrote       " << file << '\n';
}

/// Files of machines and stacks may hold anything.
planner::Price price_of(const planner::Workload& work, const planner::Machine& machine,
                        const planner::Stack& stack) {
  planner::Price price = planner::price(work, machine, stack);
  tessera::require(std::isfinite(price.step_seconds) && price.step_seconds > 0, ExitCode::usage,
                   "by machine {} and stack {} a step takes {} s; correct the values in their "
                   "files",
                   machine.name, stack.name, price.step_seconds);
  return price;
}

int run(const Args& args) {
  if (!args.empty() && args.front() == "calibrate")
    tessera::app::become_tensor_program(tessera::app::kCalibrate.name,
                                        {args.begin() + 1, args.end()});
  if (tessera::app::asks_for_help(args)) {
    std::cout << tessera::app::plan_usage();
    return 0;
  }
  Request request = tessera::app::plan_request_of(args);
  if (request.rehearse)
    tessera::app::become_tensor_program(tessera::app::kRehearse.name, rehearsal_of(request));
  if (!request.from.empty()) return tessera::app::plan_from(request);
  config::Reading job = config::read_job(request.job);
  if (request.machine.empty())
    request.machine = job.resolved.job.job.machine.value_or(planner::kUsualMachine);
  const planner::Machine chosen_for =
      planner::machine_of(request.machine, std::max(1, request.gpus));
  const planner::Stack stack =
      planner::load_stack(request.stack.empty() ? planner::stack_of(chosen_for) : request.stack);
  const config::JobConfig given = job.resolved.job;
  tessera::app::name_data(job.resolved.job);
  planner::choose_values(job, request.gpus, 0, chosen_for, stack);
  const tessera::plan::JobPlan plan = plan_of(job, request);
  const planner::Machine machine = planner::machine_of(request.machine, plan.layout.world());
  const planner::VariantSpace space(job.resolved, plan, machine, stack);
  const planner::Workload& work = space.own_work();
  const planner::Price price = price_of(work, machine, stack);
  const tessera::app::Advice advice = tessera::app::advice_of(
      job.resolved, space, price, machine, stack, {request.search, request.explain});
  const std::vector<std::string> emulated = emulated_products(plan, stack);
  const Compared with = compared(job.resolved, work, machine, stack);
  std::optional<tessera::app::RunForecast> forecast;
  if (request.run.wanted())
    forecast = tessera::app::forecast_of(request.run, plan, work, price, machine, stack);
  if (request.json) {
    nlohmann::json out = as_json(work, request, machine, stack, price);
    if (!emulated.empty()) out["emulated"] = emulated;
    add_json(out, with, price);
    if (forecast) out["run"] = tessera::app::run_json(*forecast);
    if (request.traffic) out["traffic"] = tessera::app::traffic_json(plan);
    if (request.search || !price.fits) out["search"] = as_json(advice);
    if (advice.decision) out["explain"] = explained(advice);
    std::cout << out.dump(2) << '\n';
  } else {
    print(work, price, machine, stack, emulated);
    print(with, price, machine);
    if (forecast) std::cout << tessera::app::run_text(*forecast);
    if (request.traffic) std::cout << tessera::app::traffic_table(plan);
    print(advice);
  }
  if (!request.picture.empty()) {
    tessera::write_file_atomically(
        request.out, picture_file(request, {job.resolved, work, machine, stack}, price));
    tell_written(request, request.out);
  }
  if (request.write.empty()) return 0;
  write_job(request.write, advice, given, request.machine);
  tell_written(request, request.write);
  return 0;
}

const tessera::app::CommandRegistration registration{
    "plan", "predict the time and the memory of a job's step", &run};

}  // namespace
