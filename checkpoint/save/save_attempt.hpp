// SPDX-License-Identifier: Apache-2.0
// One attempt to save, cut into phases so that those without communication can run on another
// thread.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/manifest.hpp"
#include "save/file_group.hpp"
#include "save/shard_plan.hpp"
#include "save/shard_writer.hpp"
#include "tessera/checkpoint/saver.hpp"

namespace tessera::checkpoint {

/// prepare(), then on each rank write(), where a file has several writers then share_checksums()
/// and on each rank seal(), then collect(), then on rank 0 commit(), then conclude(), then on rank
/// 0 tidy(). The collective ones throw the same Error on every rank.
class SaveAttempt {
 public:
  /// `group` is of options.files and must outlive this. `layout` is that of an earlier save, or
  /// null.
  SaveAttempt(comm::Communicator& control, const FileGroup& group, SaveOptions options, State state,
              std::span<const SliceView> views, std::shared_ptr<const ShardLayout> layout);
  SaveAttempt(const SaveAttempt&) = delete;
  SaveAttempt& operator=(const SaveAttempt&) = delete;

  /// Collective: what each rank writes, and the partial folder. False when a valid checkpoint of
  /// this step is there already and is kept.
  bool prepare();
  /// Begins to copy what this rank writes: write() then reads the copies, not the views' memory.
  void copy_by(CopyEngine& engine);
  /// This rank's boxes, durable, and where no other rank writes to its file the whole of that. No
  /// communication: on any one thread.
  void write();
  bool has_shared_files() const { return group_.is_shared(); }
  /// Collective: the checksums of a file's boxes reach the first of its ranks, which seals it.
  void share_checksums();
  /// The rest of a shared file, durable. No communication: on any one thread.
  void seal();
  /// Collective: every rank has written.
  void collect();
  /// Of this rank's file, once that is written; for the next save.
  const std::shared_ptr<const ShardLayout>& layout() const { return file_.layout; }
  /// Rank 0: the manifest and the rename. No communication: on any one thread.
  void commit();
  /// Collective: rank 0 has committed.
  SaveResult conclude();
  /// Rank 0: what may fail without harm: LATEST, older checkpoints, index.h5. No communication: on
  /// any one thread.
  void tidy() const;
  /// Removes what an attempt that failed has written; a committed checkpoint stays.
  void abandon();

 private:
  /// The file to which this rank writes.
  struct OwnFile {
    Writers writers;                               ///< coordinates of its ranks
    std::vector<std::vector<std::int64_t>> plans;  ///< what each of them writes, packed
    std::shared_ptr<const ShardLayout> layout;
    std::optional<ShardWriter> writer;
    std::vector<std::vector<std::uint32_t>> checksums;  ///< of each writer's boxes
  };
  struct StepFolders {
    std::string uuid;  ///< of this attempt, on all ranks
    std::filesystem::path partial, whole;
    bool exists = false;  ///< `whole` is there and damaged
  };
  bool is_root() const { return control_.rank() == 0; }
  void stage(SaveStage stage) const;
  void plan();
  void plan_file();
  std::vector<PlannedBox> file_boxes() const;
  void check_options();
  bool make_attempt();
  bool existing_is_valid() const;
  Manifest make_manifest() const;
  bool make_visible();

  comm::Communicator& control_;
  const FileGroup& group_;
  const SaveOptions options_;
  const State state_;
  const std::vector<SliceView> views_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::vector<SliceView> parts_;
  std::vector<TensorInfo> tensors_;
  OwnFile file_;
  std::string extra_;   ///< the training state, as JSON text
  std::string record_;  ///< of this rank's file; after collect() on rank 0 those of all
  Manifest manifest_;   ///< rank 0, from commit() on
  StepFolders folders_;
  SaveResult result_;
};

}  // namespace tessera::checkpoint
