// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/read_manifest.hpp"
#include "format/step_folder.hpp"
#include "load/checkpoint_reader.hpp"
#include "tessera/base/error.hpp"
#include "tessera/checkpoint/checkpoint_reader.hpp"
#include "tessera/checkpoint/inspect.hpp"
#include "tessera/comm/agreement.hpp"

namespace tessera::checkpoint {
namespace {

namespace fs = std::filesystem;

/// The folder that rank 0 chose and its manifest's text; an empty folder is none.
struct Choice {
  fs::path folder;
  std::string text;
};

/// Collective: rank 0's choice on every rank; empty when it chose none.
std::optional<CheckpointReader> open_chosen(comm::Communicator& control,
                                            const std::function<Choice()>& choose_one) {
  Choice mine;
  const fs::path folder = comm::on_rank_zero(control, [&] {
    mine = choose_one();
    return mine.folder.string();
  });
  if (folder.empty()) return std::nullopt;
  const std::string text = comm::broadcast_string(control, mine.text, 0);
  std::shared_ptr<CheckpointReader::Impl> impl;
  comm::on_all_ranks(control, [&] {
    impl = std::make_shared<CheckpointReader::Impl>(folder,
                                                    parse_manifest(text, folder / kManifestName));
  });
  return CheckpointReader(impl);
}

/// Why checkpoints were passed over, newest first. It is said once: in lines of the log when
/// another one was loaded or all ends in another way, or in the error when none is left.
class Skipped {
 public:
  explicit Skipped(const LogLine& log) : log_(log) {}
  ~Skipped() {
    if (log_)
      for (const std::string& line : lines_) log_("skipping checkpoint " + line);
  }
  Skipped(const Skipped&) = delete;
  Skipped& operator=(const Skipped&) = delete;

  void add(const fs::path& step, const std::string& why) {
    lines_.push_back(fmt::format("{}: {}", step.filename().string(), why));
  }
  /// Error(checkpoint) when there was one.
  void fail_if_any(const fs::path& folder) {
    if (lines_.empty()) return;
    std::string list;
    for (const std::string& line : std::exchange(lines_, {})) list += "\n  " + line;
    fail(ExitCode::checkpoint,
         "no checkpoint in {} can be loaded; move the damaged ones away to start from step 1:{}",
         folder.string(), list);
  }

 private:
  const LogLine& log_;
  std::vector<std::string> lines_;
};

/// Rank 0's part of open_newest: the newest valid step up to `latest`. One that cannot be read for
/// lack of a permission or of memory is not damaged: continuing from an older one would lose work.
Choice choose(const fs::path& folder, std::int64_t latest, Skipped& skipped) {
  const std::vector<StepFolder> steps = list_steps(folder);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (step->step > latest) continue;
    try {
      return {step->path, read_complete_manifest(step->path).text};
    } catch (const Error& error) {
      if (error.code() != ExitCode::checkpoint) throw;
      skipped.add(step->path, error.what());
    }
  }
  skipped.fail_if_any(folder);
  return {};
}

std::optional<CheckpointReader> open_up_to(comm::Communicator& control, const fs::path& folder,
                                           std::int64_t latest, Skipped& skipped) {
  return open_chosen(control, [&] { return choose(folder, latest, skipped); });
}

/// Those of the wanted tensors that loading `opened` fills; `options` are as they are for it.
std::vector<const TensorSlice*> filled_by(const CheckpointReader& opened,
                                          std::span<const SliceView> wanted,
                                          const LoadOptions& options) {
  std::vector<const TensorSlice*> filled;
  for (const SliceView& view : wanted)
    if (opened.fits(view.slice) && !options.leaves_out(view.slice.name))
      filled.push_back(&view.slice);
  return filled;
}

/// What a damaged checkpoint may have filled in part, the next one must fill wholly.
void require_all_of(comm::Communicator& control, const std::vector<const TensorSlice*>& filled,
                    const CheckpointReader& damaged, const CheckpointReader& next,
                    const LoadOptions& options) {
  comm::on_all_ranks(control, [&] {
    for (const TensorSlice* slice : filled)
      require(next.fits(*slice) && !options.leaves_out(slice->name), ExitCode::checkpoint,
              "{} is damaged, and cannot be replaced by the next older checkpoint: {} {} {}; move "
              "the damaged one away",
              damaged.folder().string(), next.folder().filename().string(),
              next.fits(*slice) ? "would be loaded without" : "lacks", slice->name);
  });
}

}  // namespace

CheckpointReader open(comm::Communicator& control, const fs::path& step_folder) {
  return *open_chosen(control, [&] {
    return Choice{step_folder, read_complete_manifest(step_folder).text};
  });
}

std::optional<CheckpointReader> open_newest(comm::Communicator& control, const fs::path& folder,
                                            const LogLine& log, std::int64_t latest_step) {
  Skipped skipped(log);
  return open_up_to(control, folder, latest_step, skipped);
}

std::optional<CheckpointReader> load_newest(comm::Communicator& control, const fs::path& folder,
                                            std::span<const SliceView> wanted,
                                            const LoadOptions& options,
                                            const NewestOptions& which) {
  Skipped skipped(options.log);
  std::optional<CheckpointReader> damaged,
      opened = open_up_to(control, folder, which.latest_step, skipped);
  std::vector<const TensorSlice*> filled;
  while (opened) {
    comm::on_all_ranks(control, [&] {
      if (which.look_at) which.look_at(*opened);
    });
    if (damaged) require_all_of(control, filled, *damaged, *opened, options);
    try {
      load(control, *opened, wanted, options);
      return opened;
    } catch (const Error& error) {
      if (error.code() != ExitCode::checkpoint) throw;
      if (control.rank() == 0) skipped.add(opened->folder(), error.what());
      filled = filled_by(*opened, wanted, options);
    }
    damaged = std::move(opened);
    opened = open_up_to(control, folder, step_of_folder(damaged->folder()) - 1, skipped);
  }
  return std::nullopt;
}

std::optional<CheckpointReader> load_named(comm::Communicator& control, const fs::path& path,
                                           std::span<const SliceView> wanted,
                                           const LoadOptions& options, const NewestOptions& which) {
  const auto is_step = [&] { return std::string(is_step_folder(path) ? "yes" : ""); };
  if (comm::on_rank_zero(control, is_step).empty())
    return load_newest(control, path, wanted, options, which);
  CheckpointReader opened = open(control, path);
  comm::on_all_ranks(control, [&] {
    if (which.look_at) which.look_at(opened);
  });
  load(control, opened, wanted, options);
  return opened;
}

}  // namespace tessera::checkpoint
