#include <limits>

#include "collective.hpp"
#include "opened.hpp"
#include "read_manifest.hpp"
#include "tessera/base/error.hpp"
#include "tessera/checkpoint/checkpoint.hpp"
#include "tessera/checkpoint/inspect.hpp"

namespace tessera::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kAnyStep = std::numeric_limits<std::int64_t>::max();

/// The folder that rank 0 chose and its manifest's text; an empty folder is none.
struct Choice {
  fs::path folder;
  std::string text;
};

Opened share(comm::Communicator& control, const Choice& mine) {
  const fs::path folder = comm::broadcast_string(control, mine.folder.string(), 0);
  const std::string text = comm::broadcast_string(control, mine.text, 0);
  std::shared_ptr<Opened::Impl> impl;
  together(control,
           [&] { impl = std::make_shared<Opened::Impl>(folder, parse_manifest(text, folder / kManifestName)); });
  return Opened(impl);
}

std::string read_step(const StepFolder& step) {
  ReadManifest read = read_complete_manifest(step.path);
  require(read.manifest.step == step.step, ExitCode::checkpoint, "{} is damaged (its manifest is of step {})",
          step.path.string(), read.manifest.step);
  return std::move(read.text);
}

/// Rank 0's part of open_newest: the newest valid step below `limit`.
Choice choose(const fs::path& folder, std::int64_t limit, const LogLine& log) {
  std::string skipped;
  const std::vector<StepFolder> steps = list_steps(folder);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (step->step >= limit) continue;
    try {
      return {step->path, read_step(*step)};
    } catch (const Error& error) {
      if (log) log(fmt::format("skipping checkpoint {}: {}", step->path.filename().string(), error.what()));
      skipped += fmt::format("\n  {}: {}", step->path.filename().string(), error.what());
    }
  }
  require(skipped.empty(), ExitCode::checkpoint,
          "no checkpoint in {} can be loaded; move the damaged ones away to start afresh:{}", folder.string(), skipped);
  return {};
}

std::optional<Opened> open_below(comm::Communicator& control, const fs::path& folder, std::int64_t limit,
                                 const LogLine& log) {
  Choice mine;
  together(control, [&] {
    if (control.rank() == 0) mine = choose(folder, limit, log);
  });
  const bool found =
      comm::all_reduce_scalar(control, static_cast<std::int64_t>(!mine.folder.empty()), comm::Op::max) != 0;
  if (!found) return std::nullopt;
  return share(control, mine);
}

}  // namespace

Opened open(comm::Communicator& control, const fs::path& step_folder) {
  Choice mine;
  together(control, [&] {
    if (control.rank() == 0) mine = {step_folder, read_complete_manifest(step_folder).text};
  });
  return share(control, mine);
}

std::optional<Opened> open_newest(comm::Communicator& control, const fs::path& folder, const LogLine& log) {
  return open_below(control, folder, kAnyStep, log);
}

std::optional<Opened> load_newest(comm::Communicator& control, const fs::path& folder,
                                  std::span<const SliceView> wanted, const LoadOptions& options) {
  std::optional<Opened> opened = open_newest(control, folder, options.log);
  std::string damage;
  while (opened) {
    opened->check(control, wanted, options);
    try {
      opened->fill(control, wanted);
      return opened;
    } catch (const Error& error) {
      if (error.code() != ExitCode::checkpoint) throw;
      damage = error.what();
    }
    if (control.rank() == 0 && options.log)
      options.log(fmt::format("skipping checkpoint {}: {}", opened->folder().filename().string(), damage));
    opened = open_below(control, folder, opened->step(), options.log);
  }
  require(damage.empty(), ExitCode::checkpoint,
          "no checkpoint in {} can be loaded; move the damaged ones away to start afresh: {}", folder.string(), damage);
  return std::nullopt;
}

}  // namespace tessera::checkpoint
