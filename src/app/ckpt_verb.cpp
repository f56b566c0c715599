// tessera ckpt list | show | verify | export: checkpoints without ranks.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>

#include "command_line.hpp"
#include "tessera/checkpoint/inspect.hpp"
#include "tessera/metrics/human.hpp"
#include "tessera/train/inference.hpp"
#include "verb.hpp"

namespace {

namespace checkpoint = tessera::checkpoint;
namespace fs = std::filesystem;
using tessera::ExitCode;
using tessera::metrics::human_bytes;

/// The step folders that an argument means: a checkpoint folder's, or the one that it is itself.
std::vector<checkpoint::StepFolder> steps_of(const std::string& argument) {
  const fs::path folder = argument;
  if (fs::exists(folder / "manifest.json")) return {{0, folder}};
  auto steps = checkpoint::list_steps(folder);
  if (steps.empty() && !checkpoint::list_steps(folder / "checkpoint").empty())
    return checkpoint::list_steps(folder / "checkpoint");
  if (steps.empty() && fs::path(folder).filename().string().starts_with("step-") && fs::exists(folder))
    return {{0, folder}};
  tessera::require(
      !steps.empty(), ExitCode::checkpoint,
      "no checkpoint in {} (no step-00000000 folder and no manifest.json); give a run's folder, its checkpoint "
      "folder or one step's folder",
      argument);
  return steps;
}

int list(const std::string& argument) {
  std::cout << fmt::format("{:<16} {:<21} {:>10} {:>6} {:>8}  {}\n", "step", "written", "bytes", "files", "tensors",
                           "mesh");
  for (const auto& step : steps_of(argument)) {
    const std::string name = step.path.filename().string();
    try {
      const checkpoint::Summary s = checkpoint::summarize(step.path);
      std::cout << fmt::format("{:<16} {:<21} {:>10} {:>6} {:>8}  {}\n", name, s.written, human_bytes(s.file_bytes),
                               s.files, s.tensors.size(), s.mesh);
    } catch (const tessera::Error& error) {
      std::cout << fmt::format("{:<16} damaged: {}\n", name, error.what());
    }
  }
  return 0;
}

void show_one(const fs::path& folder, bool with_tensors) {
  const checkpoint::Summary s = checkpoint::summarize(folder);
  std::cout << fmt::format(
      "{}\nstep     {}\nuuid     {}\nwritten  {} by {}\nmesh     {}\nfiles    {}, {}\nboxes    {} of {} tensors\nstate "
      "   {}\n",
      folder.string(), s.step, s.uuid, s.written, s.writer, s.mesh, s.files, human_bytes(s.file_bytes), s.boxes,
      s.tensors.size(), s.extra);
  if (!with_tensors) return;
  for (const auto& tensor : s.tensors)
    std::cout << fmt::format("{:<5} {:<20} {}\n", tessera::name_of(tensor.dtype),
                             fmt::format("[{}]", fmt::join(tensor.shape, ", ")), tensor.name);
}

/// All are looked at before the first bad one ends the program with code 5.
int verify(const std::string& argument, bool deep) {
  std::size_t damaged = 0;
  const auto steps = steps_of(argument);
  for (const auto& step : steps) {
    const auto findings = checkpoint::verify(step.path, deep);
    std::cout << fmt::format("{}: {}\n", step.path.string(),
                             !findings.empty() ? "DAMAGED"
                             : deep            ? "whole, every byte"
                                               : "complete");
    for (const auto& finding : findings) std::cout << fmt::format("  {}\n", finding.what);
    damaged += !findings.empty();
  }
  tessera::require(damaged == 0, ExitCode::checkpoint, "{} of {} checkpoints in {} are damaged; resuming skips them",
                   damaged, steps.size(), argument);
  return 0;
}

int export_weights(const std::string& argument, const std::string& to, const std::string& format,
                   const std::string& type) {
  tessera::require(format == "safetensors", ExitCode::usage, "--format {} is not known; use safetensors", format);
  const auto dtype = tessera::dtype_from_name(type);
  tessera::require(dtype.has_value(), ExitCode::usage, "--dtype {} is not known; use float32, bfloat16 or float16",
                   type);
  tessera::train::export_hf(steps_of(argument).back().path, to, *dtype);
  std::cout << fmt::format("{}: written\n", to);
  return 0;
}

int run(const tessera::app::Args& args) {
  CLI::App app{"Looks at checkpoints; exits with 5 when one is damaged.", "ckpt"};
  app.require_subcommand(1);
  std::string folder, to, format = "safetensors", type = "float32";
  bool with_tensors = false, deep = false, quick = false;
  const auto add = [&](const char* name, const char* summary) {
    CLI::App* verb = app.add_subcommand(name, summary);
    verb->add_option("folder", folder, "a run's folder, its checkpoint folder, or one step's folder")->required();
    return verb;
  };
  const CLI::App* listing = add("list", "one line for each step");
  CLI::App* showing = add("show", "what a checkpoint says of itself (of a folder: its newest)");
  showing->add_flag("--tensors", with_tensors, "names, types and shapes too");
  CLI::App* verifying = add("verify", "is every byte as it was written");
  CLI::Option* thorough =
      verifying->add_flag("--deep", deep, "compare every byte with its checksum (this is the default)");
  verifying->add_flag("--quick", quick, "only manifest, sizes and tables")->excludes(thorough);
  CLI::App* exporting = add("export", "weights for other programs, with a Hugging Face config.json");
  exporting->add_option("--to", to, "the folder to make")->required();
  exporting->add_option("--format", format, "safetensors");
  exporting->add_option("--dtype", type, "float32, bfloat16 or float16 [float32]");
  if (!tessera::app::parse(app, args)) return 0;
  if (listing->parsed()) return list(folder);
  if (verifying->parsed()) return verify(folder, !quick);
  if (exporting->parsed()) return export_weights(folder, to, format, type);
  show_one(steps_of(folder).back().path, with_tensors);
  return 0;
}

const tessera::app::VerbRegistration registration{"ckpt", "list, show, verify and export checkpoints", &run};

}  // namespace
