// SPDX-License-Identifier: Apache-2.0
// tessera plan: the time and the memory of a job's step on a machine that is not here; no ranks, no
// GPU.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "command.hpp"
#include "plan_data.hpp"
#include "plan_search.hpp"
#include "plan_traffic.hpp"
#include "tensor_commands.hpp"
#include "tensor_program.hpp"
#include "tessera/base/atomic_file.hpp"
#include "tessera/base/log.hpp"
#include "tessera/config/resolve.hpp"
#include "tessera/metrics/human.hpp"
#include "tessera/plan/job_plan.hpp"
#include "tessera/planner/variant_space.hpp"

namespace {

using tessera::ExitCode;
using tessera::app::Args;
namespace config = tessera::config;
namespace planner = tessera::planner;

using planner::kGiB;

struct Request {
  int gpus = 0;  ///< 0: as few as the mesh needs
  std::string machine = "h100-700w";
  std::string stack;  ///< empty: Tessera on GPUs or on a host
  bool json = false, search = false, explain = false, traffic = false, rehearse = false;
  std::string write;  ///< empty: nothing is written
  Args job;
};

std::string usage() {
  return fmt::format(
      "Usage: tessera plan [FILE.toml] [--gpus N] [--machine NAME] [--stack NAME] [--json]\n"
      "                    [--search] [--explain] [--write FILE.toml] [--traffic]\n"
      "                    [--section.key VALUE]...\n"
      "       tessera plan --rehearse [FILE.toml] [--gpus N] [--json] [--section.key VALUE]...\n"
      "       tessera plan calibrate [--to FILE.toml] [--folder DIR] [--seconds N]\n"
      "\n"
      "Predicts the time and the memory of a training step, without GPUs and without ranks.\n"
      "\n"
      "--gpus N         the number of GPUs (default: the fewest that the mesh needs).\n"
      "--machine NAME   the machine (default: h100-700w), or a file that ends in .toml. `host`: "
      "the\n"
      "                 cores of this node, as the processor describes itself.\n"
      "--stack NAME     the software (default: tessera, on hosts tessera-host), or a file that\n"
      "                 ends in .toml.\n"
      "--json           print one JSON object.\n"
      "--search         also print the five fastest variants that fit, why they are, and\n"
      "                 what each knob of the first changes.\n"
      "--explain        also print how the fastest variant follows: questions in their order, "
      "from\n"
      "                 one GPU to float8, each with the figures that answer it.\n"
      "--traffic        also print what communicators count in a step: calls and MiB by axis and\n"
      "                 call, exactly as in a run over MPI.\n"
      "--rehearse       for a job on hosts: the memory of its ranks, found by taking two steps of\n"
      "                 each pipeline rank here, without the others.\n"
      "--write FILE     search, and write the fastest variant as a job.\n"
      "calibrate        measure this node, and write a machine file (default: host.toml).\n"
      "\n"
      "Machines:\n"
      "  {}\n"
      "\n"
      "Stacks:\n"
      "  {}\n"
      "\n"
      "Exit codes: 0 predicted, even if the job does not fit; 2 wrong configuration.\n",
      fmt::join(planner::machine_names(), "\n  "), fmt::join(planner::stack_names(), "\n  "));
}

/// Takes "--name VALUE" or "--name=VALUE" at `at`, and moves `at` to its last word.
bool takes(const Args& args, std::size_t& at, const std::string& name, std::string& value) {
  if (args[at].starts_with(name + "=")) {
    value = args[at].substr(name.size() + 1);
    return true;
  }
  if (args[at] != name) return false;
  tessera::require(at + 1 < args.size(), ExitCode::usage, "{} needs a value", name);
  value = args[++at];
  return true;
}

Request request_of(const Args& args) {
  Request request;
  std::string gpus;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "--json")
      request.json = true;
    else if (args[i] == "--traffic")
      request.traffic = true;
    else if (args[i] == "--explain")
      request.explain = true;
    else if (args[i] == "--rehearse")
      request.rehearse = true;
    else if (args[i] == "--search")
      request.search = true;
    else if (takes(args, i, "--gpus", gpus))
      request.gpus = tessera::app::count_in("--gpus", gpus);
    else if (!takes(args, i, "--machine", request.machine) &&
             !takes(args, i, "--stack", request.stack) && !takes(args, i, "--write", request.write))
      request.job.push_back(args[i]);
  }
  request.search |= !request.write.empty();
  return request;
}

/// A rehearsal prices nothing: it has no use for these flags.
void refuse_beside_rehearsal(const Args& args) {
  for (const std::string& word : args)
    for (const char* flag :
         {"--machine", "--stack", "--search", "--explain", "--traffic", "--write"})
      tessera::require(word != flag && !word.starts_with(std::string(flag) + "="), ExitCode::usage,
                       "{} has no effect with --rehearse; omit one of them", flag);
}

tessera::plan::JobPlan plan_of(config::Reading& job, int gpus) {
  const auto plan = tessera::plan::Planner().plan(job, gpus, 0);
  for (const std::string& warning : job.resolved.warnings) tessera::log::warning("{}", warning);
  config::throw_if_wrong(job.problems);
  TESSERA_EXPECT(plan, "a job without problems has no plan");
  return *plan;
}

/// Of one of the ranks, where the machine is a host.
planner::Machine machine_of(const Request& request, int ranks) {
  if (request.machine == "host") return planner::machine_of(planner::this_host(), ranks);
  return planner::share_of(planner::load_machine(request.machine), ranks);
}

std::string stack_of(const Request& request, const planner::Machine& machine) {
  if (!request.stack.empty()) return request.stack;
  return machine.host ? "tessera-host" : "tessera";
}

nlohmann::json as_json(const planner::Workload& work, const Request& request,
                       const planner::Stack& stack, const planner::Price& price) {
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
          {"fits", price.fits}};
}

void print_time(const planner::Workload& work, const planner::Price& price, bool on_host) {
  std::cout << fmt::format("step        {:.3f} s, {} tokens\n", price.step_seconds,
                           tessera::metrics::human_count(work.step_tokens()));
  std::cout << fmt::format(
      "speed       {:.0f} tokens/s a {}, MFU {:.1f} % (full attention), {:.1f} "
      "% (causal)\n",
      price.tokens_per_second_per_gpu, on_host ? "rank" : "GPU", 100 * price.mfu_full,
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
  std::cout << fmt::format("memory      {:.1f} GiB of {:.1f}: ", price.memory.total() / kGiB,
                           machine.memory_bytes / kGiB);
  const char* separator = "";
  for (const planner::MemoryTerm& term : planner::kMemoryTerms) {
    const double gib = price.memory.*term.bytes / kGiB;
    if (gib < 0.05) continue;
    std::cout << separator << fmt::format("{} {:.1f}", term.name, gib);
    separator = ", ";
  }
  std::cout << (price.fits ? "\n" : "\n            DOES NOT FIT\n");
}

Args rehearsal_of(const Request& request) {
  Args words = request.job;
  if (request.gpus > 0) words.push_back(fmt::format("--gpus={}", request.gpus));
  if (request.json) words.emplace_back("--json");
  return words;
}

/// The variant as a job: its data are those of the file, which planning does not need.
void write_job(const std::string& path, const tessera::app::Advice& advice,
               const config::JobConfig& given) {
  tessera::require(!advice.found.best.empty(), ExitCode::usage,
                   "no variant fits: {} is not written", path);
  config::Resolved job = advice.found.best.front().job;
  job.job.training.dataset_path = given.training.dataset_path;
  job.job.validation.enable = given.validation.enable;
  tessera::write_file_atomically(path, job.to_toml());
}

void print(const planner::Workload& work, const planner::Price& price,
           const planner::Machine& machine, const planner::Stack& stack) {
  std::cout << fmt::format("{}, {} parameters, on {} x {}, {}\n", work.model.name,
                           tessera::metrics::human_count(work.model.params()), work.gpus,
                           machine.name, stack.name);
  print_time(work, price, machine.host.has_value());
  print_memory(price, machine);
}

int run(const Args& args) {
  if (!args.empty() && args.front() == "calibrate")
    tessera::app::become_tensor_program(tessera::app::kCalibrate.name,
                                        {args.begin() + 1, args.end()});
  if (tessera::app::asks_for_help(args)) {
    std::cout << usage();
    return 0;
  }
  const Request request = request_of(args);
  if (request.rehearse) {
    refuse_beside_rehearsal(args);
    tessera::app::become_tensor_program(tessera::app::kRehearse.name, rehearsal_of(request));
  }
  const planner::Stack stack = planner::load_stack(stack_of(request, machine_of(request, 1)));
  config::Reading job = config::read_job(request.job);
  const config::JobConfig given = job.resolved.job;
  tessera::app::name_data(job.resolved.job);
  const tessera::plan::JobPlan plan = plan_of(job, request.gpus);
  const planner::Machine machine = machine_of(request, plan.layout.world());
  const planner::VariantSpace space(job.resolved, plan, machine, stack);
  const planner::Workload& work = space.own_work();
  const planner::Price price = planner::price(work, machine, stack);
  const tessera::app::Advice advice = tessera::app::advice_of(
      job.resolved, space, price, machine, stack, {request.search, request.explain});
  if (request.json) {
    nlohmann::json out = as_json(work, request, stack, price);
    if (request.traffic) out["traffic"] = tessera::app::traffic_json(plan);
    if (request.search || !price.fits) out["search"] = as_json(advice);
    if (advice.decision) out["explain"] = explained(advice);
    std::cout << out.dump(2) << '\n';
  } else {
    print(work, price, machine, stack);
    if (request.traffic) std::cout << tessera::app::traffic_table(plan);
    print(advice);
  }
  if (request.write.empty()) return 0;
  write_job(request.write, advice, given);
  if (!request.json) std::cout << "wrote       " << request.write << '\n';
  return 0;
}

const tessera::app::CommandRegistration registration{
    "plan", "predict the time and the memory of a job's step", &run};

}  // namespace
