// SPDX-License-Identifier: Apache-2.0
// tessera ckpt: checkpoints without ranks.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>

#include "ckpt_folders.hpp"
#include "ckpt_upkeep.hpp"
#include "command.hpp"
#include "command_line.hpp"
#include "tessera/base/error.hpp"
#include "tessera/checkpoint/inspect.hpp"
#include "tessera/inputs/hf_conversion.hpp"
#include "tessera/metrics/human.hpp"

namespace {

namespace checkpoint = tessera::checkpoint;
namespace fs = std::filesystem;
using tessera::ExitCode;
using tessera::app::Flag;
using tessera::app::Flags;
using tessera::app::newest_of;
using tessera::app::steps_of;
using tessera::metrics::human_bytes;

int list(const std::string& argument) {
  const auto steps = steps_of(argument);
  std::cout << fmt::format("{:<16} {:<21} {:>10} {:>6} {:>8}  {}\n", "step", "written", "bytes",
                           "files", "tensors", "mesh");
  for (const auto& step : steps) {
    const std::string name = step.path.filename().string();
    try {
      const checkpoint::Summary s = checkpoint::summarize(step.path);
      std::cout << fmt::format("{:<16} {:<21} {:>10} {:>6} {:>8}  {}\n", name, s.written,
                               human_bytes(s.file_bytes), s.files, s.tensors.size(), s.mesh);
    } catch (const tessera::Error& error) {
      std::cout << fmt::format("{:<16} {}: {}\n", name,
                               error.code() == ExitCode::checkpoint ? "damaged" : "not read",
                               error.what());
    }
  }
  return 0;
}

void show_one(const fs::path& folder, bool with_tensors) {
  const checkpoint::Summary s = checkpoint::summarize(folder);
  std::cout << fmt::format(
      "{}\nstep     {}\nuuid     {}\nwritten  {} by {}\nmesh     {}\nfiles    {}, {}\nboxes    {} "
      "of {} tensors\nstate "
      "   {}\n",
      folder.string(), s.step, s.uuid, s.written, s.writer, s.mesh, s.files,
      human_bytes(s.file_bytes), s.boxes, s.tensors.size(), s.extra);
  if (!with_tensors) return;
  for (const auto& tensor : s.tensors)
    std::cout << fmt::format("{:<5} {:<20} {}\n", tessera::name_of(tensor.dtype),
                             fmt::format("[{}]", fmt::join(tensor.shape, ", ")), tensor.name);
}

/// All are looked at before a bad one ends the program, with code 5 if one is damaged, else with 3.
int verify(const std::string& argument, bool deep) {
  std::size_t damaged = 0, unread = 0, wrong_views = 0;
  const auto steps = steps_of(argument);
  for (const auto& step : steps) {
    const auto findings = checkpoint::verify(step.path, deep);
    const bool whole = checkpoint::can_load(findings);
    const bool is_damaged = std::ranges::any_of(
        findings, [](const auto& finding) { return finding.is_damage && finding.is_needed; });
    std::cout << fmt::format("{}: {}\n", step.path.string(),
                             is_damaged ? "DAMAGED"
                             : !whole   ? "CANNOT BE READ"
                             : deep     ? "valid, every byte compared"
                                        : "complete");
    for (const auto& finding : findings)
      std::cout << fmt::format("  {}{}\n", finding.what,
                               finding.is_needed ? "" : " (resuming does not read this file)");
    damaged += is_damaged;
    unread += !whole && !is_damaged;
    wrong_views += whole && !findings.empty();
  }
  if (steps.back().path != argument)
    if (const auto hint = checkpoint::check_hint(steps.back().path.parent_path()))
      std::cout << fmt::format("{} (resuming does not read this file)\n", hint->what);
  tessera::require(damaged == 0, ExitCode::checkpoint,
                   "{} of {} checkpoints in {} are damaged; resuming skips them", damaged,
                   steps.size(), argument);
  tessera::require(unread == 0, ExitCode::environment,
                   "{} of {} checkpoints in {} cannot be read, and may be whole; resuming stops at "
                   "them",
                   unread, steps.size(), argument);
  tessera::require(wrong_views == 0, ExitCode::checkpoint,
                   "index.h5 of {} of {} checkpoints in {} is damaged; their weights are whole",
                   wrong_views, steps.size(), argument);
  return 0;
}

tessera::DType dtype_named(const std::string& type) {
  const auto dtype = tessera::dtype_from_name(type);
  tessera::require(
      dtype == tessera::DType::f32 || dtype == tessera::DType::bf16 || dtype == tessera::DType::f16,
      ExitCode::usage, "--dtype {} is not known; use float32, bfloat16 or float16", type);
  return *dtype;
}

/// A tokenizer.json by its folder, as users name it.
fs::path place_of(const fs::path& tokenizer) {
  if (tokenizer.filename() != "tokenizer.json") return tokenizer;
  return tokenizer.has_parent_path() ? tokenizer.parent_path() : fs::path(".");
}

struct Export {
  std::string to, format = "safetensors", type = "float32";
  std::optional<std::string> tokenizer;
  bool replace = false;

  void add_to(Flags& app) {
    app.add_option("--to", to, "folder to create").required();
    app.add_option("--format", format, "safetensors, the only format");
    app.add_option("--dtype", type, "float32, bfloat16 or float16 [float32]");
    app.add_option("--tokenizer", tokenizer, "tokenizer.json or its folder [the run's]");
    app.add_flag("--force", replace, "replace the files of an earlier export");
  }

  /// Of the checkpoints whose data are whole; those that are not are named.
  tessera::inputs::Exported export_newest(const std::string& argument,
                                          const tessera::inputs::ExportOptions& options) const {
    auto steps = steps_of(argument);
    for (; steps.size() > 1; steps.pop_back()) {
      try {
        return tessera::inputs::export_hf(steps.back().path, to, options);
      } catch (const tessera::Error& error) {
        if (error.code() != ExitCode::checkpoint) throw;
        std::cerr << fmt::format("skipped {}: {}\n", steps.back().path.string(), error.what());
      }
    }
    return tessera::inputs::export_hf(steps.front().path, to, options);
  }

  int run(const std::string& argument) const {
    tessera::require(format == "safetensors", ExitCode::usage,
                     "--format {} is not known; use safetensors", format);
    tessera::inputs::ExportOptions options{dtype_named(type), replace, {}};
    if (tokenizer) options.tokenizer = *tokenizer;
    const tessera::inputs::Exported made = export_newest(argument, options);
    std::cout << fmt::format("{}: weights of step {} as {}, {}\n", to, made.step, type,
                             human_bytes(made.bytes));
    std::cout << (made.tokenizer
                      ? fmt::format("tokenizer: that in {}\n", place_of(*made.tokenizer).string())
                      : fmt::format("no tokenizer: {}; name it with --tokenizer PATH\n",
                                    made.why_no_tokenizer));
    return 0;
  }
};

struct Import {
  std::string weights, to, config, type;
  int files = 1;

  void add_to(Flags& app) {
    app.add_option("weights", weights, "a Hugging Face folder or a .safetensors file").required();
    app.add_option("--to", to, "checkpoint folder in which to create step-00000000").required();
    app.add_option("--config", config,
                   "job file with model name and flavor [the config.json next to the weights]");
    app.add_option("--dtype", type,
                   "float32, bfloat16 or float16 [as stored; bfloat16 for quantized weights]");
    app.add_option("--files", files, "number of shard files [1]");
  }

  int run() const {
    tessera::inputs::ImportOptions options{to, {}, std::nullopt, files};
    if (!config.empty()) options.config = {config};
    if (!type.empty()) options.dtype = dtype_named(type);
    tessera::app::require_target(options.folder);
    const fs::path made = tessera::inputs::import_weights(weights, options);
    const checkpoint::Summary s = checkpoint::summarize(made);
    std::cout << fmt::format("{}: {} tensors, {}; use it as checkpoint.initial_load_path\n",
                             made.string(), s.tensors.size(), human_bytes(s.file_bytes));
    return 0;
  }
};

struct Verify {
  bool deep = false, quick = false;

  void add_to(Flags& app) {
    const Flag thorough = app.add_flag("--deep", deep, "compare every byte (the default)");
    app.add_flag("--quick", quick, "check only manifest, sizes and tables").excludes(thorough);
  }

  int run(const std::string& folder) const { return verify(folder, !quick); }
};

struct Prune {
  checkpoint::PruneOptions options;
  bool dry_run = false;

  void add_to(Flags& app) {
    app.add_option("--keep-latest", options.retention.keep_latest,
                   "number of latest valid checkpoints to keep")
        .required();
    app.add_option("--keep-every", options.retention.keep_every,
                   "also keep checkpoints whose step is a multiple of this")
        .positive();
    app.add_flag("--damaged", options.damaged,
                 "also remove damaged checkpoints older than a valid one, and *.damaged-*");
    app.add_flag("--partial", options.partial,
                 "also remove the *.partial-* folders of saves that have ended");
    app.add_flag("--dry-run", dry_run, "only print what would be removed");
  }

  int run(const std::string& folder) const {
    return tessera::app::prune_checkpoints(folder, options, dry_run);
  }
};

struct Reshard {
  std::string to;
  int files = 1;

  void add_to(Flags& app) {
    app.add_option("to", to, "checkpoint folder in which to create the step folder").required();
    app.add_option("--files", files, "number of shard files").required();
  }

  int run(const std::string& folder) const {
    return tessera::app::reshard_checkpoint(folder, to, files);
  }
};

int run(const tessera::app::Args& args) {
  Flags app{
      "Inspects, verifies, prunes and converts checkpoints. `verify` exits with 5 if one is "
      "damaged, and with 3 if one cannot be read.",
      "ckpt"};
  app.require_subcommand();
  std::string folder, other;
  bool with_tensors = false;
  Export exported;
  Import imported;
  Verify verified;
  Prune pruned;
  Reshard resharded;
  const auto add = [&](const char* name, const char* summary,
                       const char* of =
                           "folder of a run, its checkpoint folder, "
                           "or the folder of a step") {
    Flags command = app.add_subcommand(name, summary);
    command.add_option("folder", folder, of).required();
    return command;
  };
  const Flags listing = add("list", "list checkpoints, one a line");
  Flags showing =
      add("show", "print the header of a checkpoint; in a folder, of the latest valid one");
  showing.add_flag("--tensors", with_tensors, "print names, types and shapes of the tensors");
  Flags verifying = add("verify", "read every byte and compare the checksums");
  verified.add_to(verifying);
  Flags exporting = add("export", "write weights and tokenizer as a Hugging Face folder");
  exported.add_to(exporting);
  Flags comparing =
      add("diff", "print the tensors that differ, and by how much; exits with 1 if any do");
  comparing.add_option("other", other, "the second checkpoint").required();
  Flags pruning = add("prune", "remove old checkpoints, but never the latest valid one",
                      "folder of a run, or its checkpoint folder");
  pruned.add_to(pruning);
  Flags resharding = add("reshard", "rewrite a checkpoint with another number of files");
  resharded.add_to(resharding);
  Flags importing = app.add_subcommand("import", "convert Hugging Face weights to a checkpoint");
  imported.add_to(importing);
  if (!app.parse(args)) return 0;
  if (listing.parsed()) return list(folder);
  if (verifying.parsed()) return verified.run(folder);
  if (exporting.parsed()) return exported.run(folder);
  if (importing.parsed()) return imported.run();
  if (comparing.parsed()) return tessera::app::diff_checkpoints(folder, other);
  if (pruning.parsed()) return pruned.run(folder);
  if (resharding.parsed()) return resharded.run(folder);
  show_one(newest_of(folder), with_tensors);
  return 0;
}

const tessera::app::CommandRegistration registration{
    "ckpt", "list, show, verify, diff, prune, reshard, import and export checkpoints", &run};

}  // namespace
