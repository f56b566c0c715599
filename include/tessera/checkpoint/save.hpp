// SPDX-License-Identifier: Apache-2.0
// Saving training state, format "tessera-checkpoint 1".
//
// Promise: a checkpoint is either listed, and then loads bit-exactly on any mesh, or it is not
// there. A failed save never harms the one before. A damaged file is named and skipped. No input
// file crashes the program.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "tessera/checkpoint/slice_view.hpp"
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
  std::int64_t keep_every = 0;  ///< multiples of this are kept permanently; 0: none
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
/// while training continues: saver.hpp. On failure every rank throws the same Error (checkpoint;
/// environment for permissions and read-only file systems), the partial folder is removed and older
/// checkpoints are as before. A damaged `step-N` is renamed to `step-N.damaged-UUID`.
SaveResult save(comm::Communicator& control, const SaveOptions& options, const State& state,
                std::span<const SliceView> views);

}  // namespace tessera::checkpoint
