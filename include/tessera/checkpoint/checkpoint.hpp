// SPDX-License-Identifier: Apache-2.0
// Saving and loading training state, format "tessera-checkpoint 1".
//
// Promise: a checkpoint is either listed, and then loads bit-exactly on any mesh, or it is not
// there. A failed save never harms the one before. A damaged file is named and skipped. No input
// file crashes the program.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/checkpoint/load.hpp"
#include "tessera/checkpoint/weight_source.hpp"
#include "tessera/comm/communicator.hpp"

namespace tessera::checkpoint {

/// What is not a tensor. `json_extra` is one JSON object: data position, RNG seed, schedule,
/// whatever the trainer needs.
struct State {
  std::int64_t step = 0;
  std::string json_extra = "{}";
};

/// One HDF5 file for each mesh coordinate, for each node, or one in all; any of them loads on any
/// mesh.
enum class FileLayout : std::uint8_t { rank, node, single };

/// Points of a save at which SaveOptions::on_stage is called: the partial folder is there; the data
/// of all ranks is durable, and the manifest and the rename follow.
enum class SaveStage : std::uint8_t { prepared, written };

struct SaveOptions {
  std::filesystem::path folder;  ///< "<dump_folder>/checkpoint"; step folders are made in it
  std::string coord_name;  ///< this rank's coordinate, "pp0.r0.s1.cp0.tp0": names its shard file
  std::string mesh;        ///< "pp2.r1.s2.cp1.tp2"
  /// resolved configuration, kept for people in index.h5 and manifest.json
  std::string config_toml;
  FileLayout files = FileLayout::rank;  ///< the same on all ranks
  int keep_latest_k = 0;  ///< after this save keep it and the newest k - 1 older ones; 0 keeps all
  std::int64_t keep_every = 0;  ///< and for ever those whose step is a multiple of this; 0: none
  bool write_index = true;  ///< index.h5, after the commit: every tensor whole, for h5py and h5dump
  /// a partial folder of an unknown process is dead when untouched for this long
  double stale_partial_seconds = 3600;
  /// Called on every rank; an exception from it fails the save. For progress and tests.
  std::function<void(SaveStage)> on_stage{};
  std::string node{};  ///< FileLayout::node: ranks that give the same one share a file; empty:
                       ///< those of one machine do
};

struct SaveResult {
  std::filesystem::path folder;  ///< the step folder
  bool kept_existing = false;    ///< a valid checkpoint of this step was already there and was kept
  std::int64_t bytes = 0;        ///< tensor bytes, all ranks
  double seconds = 0;            ///< from the beginning until it was visible
  double blocked_seconds = 0;    ///< of these the caller was held
};

/// Collective over `control` (host memory). Blocks until the checkpoint is on disk and visible
/// under its name, rank 0 until index.h5 is written and older checkpoints are removed, too. To save
/// while training goes on: saver.hpp. On failure every rank throws the same Error (checkpoint;
/// environment for permissions and read-only file systems), the partial folder is removed and older
/// checkpoints are as before. A damaged `step-N` is renamed to `step-N.damaged-UUID`.
SaveResult save(comm::Communicator& control, const SaveOptions& options, const State& state,
                std::span<const SliceView> views);

/// No step is later.
inline constexpr std::int64_t kAnyStep = std::numeric_limits<std::int64_t>::max();

/// A checkpoint whose manifest was read and checked. Cheap to copy. Box tables and data are read,
/// and checked, on demand.
class Opened final : public WeightSource {
 public:
  struct Impl;
  explicit Opened(std::shared_ptr<Impl> impl);

  const std::filesystem::path& folder() const;
  std::int64_t step() const;
  const std::string& extra() const;  ///< equal to State::json_extra as JSON
  const std::string& uuid() const;
  const std::string& mesh() const;
  const std::string& config_toml() const;

  std::string description() const override;
  ExitCode misfit_kind() const override { return ExitCode::usage; }
  /// Every tensor, in the manifest's order.
  const std::vector<TensorInfo>& tensors() const override;
  const TensorInfo* find(std::string_view name) const override;
  /// Error(usage) when there is no such tensor or it has another shape, Error(checkpoint) for
  /// damage.
  void read(const TensorSlice& wanted, void* data) const override;
  /// From whatever boxes were stored; `replica` is ignored. Error(checkpoint) when a block that is
  /// touched is damaged.
  void fill(std::span<const SliceView> wanted) const override;

 private:
  std::shared_ptr<Impl> impl_;
};

/// Collective: opens exactly this step folder. Error(checkpoint) when it is damaged or not there.
Opened open(comm::Communicator& control, const std::filesystem::path& step_folder);

/// Collective: the newest step folder, none behind `latest_step`, with a valid manifest and
/// complete files. Damaged ones are skipped with a line that says which and why. Empty when the
/// folder holds no checkpoint; Error(checkpoint) when all of them are damaged, Error(environment)
/// when one cannot be read for want of a permission or of memory.
std::optional<Opened> open_newest(comm::Communicator& control, const std::filesystem::path& folder,
                                  const LogLine& log, std::int64_t latest_step = kAnyStep);

/// Which checkpoints load_newest() looks at.
struct NewestOptions {
  std::int64_t latest_step = kAnyStep;  ///< no later ones
  /// Called on every rank with each one before it is loaded. What LoadOptions::leave_out says may
  /// depend on it.
  std::function<void(const Opened&)> look_at{};
};

/// Collective: open_newest and load, going on to the next older checkpoint when a block turns out
/// to be damaged; that one must fill each wanted tensor which the damaged one fills, so that no
/// value of the damaged one stays.
std::optional<Opened> load_newest(comm::Communicator& control, const std::filesystem::path& folder,
                                  std::span<const SliceView> wanted,
                                  const LoadOptions& options = {}, const NewestOptions& which = {});

}  // namespace tessera::checkpoint
