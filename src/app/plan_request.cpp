// SPDX-License-Identifier: Apache-2.0
#include "plan_request.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>

#include "plan_pictures.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/suggest.hpp"
#include "tessera/planner/machine.hpp"
#include "tessera/planner/stack.hpp"

namespace tessera::app {
namespace {

/// Takes "--name VALUE" or "--name=VALUE" at `at`, and moves `at` to its last word.
bool takes(const Args& args, std::size_t& at, const std::string& name, std::string& value) {
  if (args[at].starts_with(name + "=")) {
    value = args[at].substr(name.size() + 1);
    return true;
  }
  if (args[at] != name) return false;
  require(at + 1 < args.size(), ExitCode::usage, "{} needs a value", name);
  value = args[++at];
  return true;
}

/// The same of an amount.
bool takes(const Args& args, std::size_t& at, const std::string& name,
           std::optional<double>& amount) {
  std::string text;
  if (!takes(args, at, name, text)) return false;
  amount = amount_in(name, text);
  return true;
}

/// What is of no use with `with`.
void refuse_beside(const char* with, const Args& args, std::initializer_list<const char*> flags) {
  for (const std::string& word : args)
    for (const char* flag : flags)
      require(word != flag && !word.starts_with(std::string(flag) + "="), ExitCode::usage,
              "{} has no effect with {}; omit one of them", flag, with);
}

/// A run has a job, a number of ranks and a step already.
void check_run(const PlanRequest& request, const Args& args) {
  refuse_beside("--from", args,
                {"--rehearse", "--gpus", "--search", "--explain", "--traffic", "--write",
                 "--picture", "--tokens", "--price", "--gpu-mtbf"});
  require(request.job.empty(), ExitCode::usage, "the job of --from is that of the run; omit '{}'",
          request.job.front());
  if (!request.out.empty()) planner::require_machine_file("--out", request.out);
}

void check_picture(const PlanRequest& request) {
  require(request.picture.empty() == request.out.empty(), ExitCode::usage, "{} needs {}",
          request.picture.empty() ? "--out" : "--picture",
          request.picture.empty() ? "--picture KIND" : "--out FILE.svg or FILE.html");
  require(request.out.empty() || request.out.ends_with(".svg") || request.out.ends_with(".html"),
          ExitCode::usage, "--out {} ends neither in .svg nor in .html", request.out);
  const std::vector<std::string>& known = picture_names();
  require(request.picture.empty() || std::ranges::find(known, request.picture) != known.end(),
          ExitCode::usage, "--picture draws {}, not '{}'{}", fmt::join(known, ", "),
          request.picture, did_you_mean(request.picture, known));
}

}  // namespace

std::string plan_usage() {
  return fmt::format(
      "Usage: tessera plan [FILE.toml] [--gpus N] [--machine NAME] [--stack NAME] [FLAG]...\n"
      "                    [--section.key VALUE]...\n"
      "       tessera plan --rehearse [FILE.toml] [--gpus N] [--json] [--section.key VALUE]...\n"
      "       tessera plan --from RUN [--machine NAME] [--stack NAME] [--json] [--out FILE.toml]\n"
      "       tessera plan calibrate [--to FILE.toml] [--folder DIR] [--seconds N]\n"
      "\n"
      "Predicts the time and the memory of a training step, without GPUs and without ranks.\n"
      "\n"
      "--gpus N         the number of GPUs (default: the fewest that the mesh needs).\n"
      "--machine NAME   the machine (default: job.machine, or h100-700w), or a file that ends in\n"
      "                 .toml. `host`: the cores of this node, as the processor describes itself.\n"
      "--stack NAME     the software (default: tessera, on hosts tessera-host), or a file that\n"
      "                 ends in .toml.\n"
      "--json           print one JSON object.\n"
      "--search         also print the five fastest variants that fit, why they are, and\n"
      "                 what each knob of the first changes.\n"
      "--explain        also print how the fastest variant follows: questions in their order, "
      "from\n"
      "                 one GPU to float8, each with the results that answer it.\n"
      "--traffic        also print what communicators count in a step: calls and MiB by axis and\n"
      "                 call, exactly as in a run over MPI.\n"
      "--tokens N       also print time, GPU-hours and energy of a run over N tokens (15e12, "
      "15T),\n"
      "                 and its goodput (default: those of training.steps).\n"
      "--price DOLLARS  the same, and the cost of the run, at this price of a GPU for an hour.\n"
      "--gpu-mtbf HOURS the same, with a failure of each GPU every HOURS (default:\n"
      "                 checkpoint.mtbf_hours of the job, or 50000).\n"
      "--picture KIND   also draw memory (of each rank over a step), roofline (kernels and\n"
      "                 limits), scaling (with GPUs) or timeline (of ranks) into --out.\n"
      "--out FILE       the picture's file: FILE.svg, or FILE.html with tables beside it.\n"
      "--rehearse       the memory of the job's ranks, found by taking steps of each pipeline "
      "rank\n"
      "                 here, without the others. With job.device = \"cuda\" tensors have shapes\n"
      "                 alone: no GPU is needed, and no memory for them.\n"
      "--from RUN       compare a run with what is predicted of it, and say which value of the\n"
      "                 machine is off. RUN is its folder. The machine is that of the run, or\n"
      "                 --machine.\n"
      "--out FILE.toml  with --from: write the machine file with the fewest corrections that\n"
      "                 explain the run.\n"
      "--write FILE     search, and write the fastest variant as a job.\n"
      "calibrate        measure this node, and write a machine file (default: host.toml).\n"
      "\n"
      "Machines (h100 is h100-700w, and a100 is a100-80gb):\n"
      "  {}\n"
      "\n"
      "Stacks:\n"
      "  {}\n"
      "\n"
      "Exit codes: 0 predicted, even if the job does not fit; 2 wrong configuration; 3 a file "
      "cannot be\n"
      "written; 4 data missing.\n",
      fmt::join(planner::machine_names(), "\n  "), fmt::join(planner::stack_names(), "\n  "));
}

PlanRequest plan_request_of(const Args& args) {
  PlanRequest request;
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
      request.gpus = count_in("--gpus", gpus);
    else if (!takes(args, i, "--machine", request.machine) &&
             !takes(args, i, "--stack", request.stack) &&
             !takes(args, i, "--write", request.write) &&
             !takes(args, i, "--picture", request.picture) &&
             !takes(args, i, "--out", request.out) && !takes(args, i, "--from", request.from) &&
             !takes(args, i, "--tokens", request.run.tokens) &&
             !takes(args, i, "--price", request.run.dollars) &&
             !takes(args, i, "--gpu-mtbf", request.run.mtbf_hours))
      request.job.push_back(args[i]);
  }
  request.search |= !request.write.empty();
  std::error_code ignored;
  Args read = request.job;
  read.insert(read.end(), {request.machine, request.stack});
  for (const std::string& file : read)
    require(request.write.empty() || !std::filesystem::equivalent(file, request.write, ignored),
            ExitCode::usage, "--write {} would replace a file that is read; name another file",
            request.write);
  if (!request.write.empty()) planner::refuse_machine_file("--write", request.write);
  if (!request.from.empty())
    check_run(request, args);
  else
    check_picture(request);
  if (request.rehearse)  // it prices nothing
    refuse_beside("--rehearse", args,
                  {"--machine", "--stack", "--search", "--explain", "--traffic", "--write",
                   "--picture", "--out", "--tokens", "--price", "--gpu-mtbf"});
  return request;
}

Args rehearsal_of(const PlanRequest& request) {
  Args words = request.job;
  if (request.gpus > 0) words.push_back(fmt::format("--gpus={}", request.gpus));
  if (request.json) words.emplace_back("--json");
  return words;
}

}  // namespace tessera::app
