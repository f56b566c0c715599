// SPDX-License-Identifier: Apache-2.0
// Checkpoints that are there: opening one, or the newest that is whole.
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

/// No step is later.
inline constexpr std::int64_t kAnyStep = std::numeric_limits<std::int64_t>::max();

/// A checkpoint whose manifest was read and checked. Cheap to copy. Box tables and data are read,
/// and checked, on demand.
class CheckpointReader final : public WeightSource {
 public:
  struct Impl;
  explicit CheckpointReader(std::shared_ptr<Impl> impl);

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
CheckpointReader open(comm::Communicator& control, const std::filesystem::path& step_folder);

/// Collective: the newest step folder, none after `latest_step`, with a valid manifest and complete
/// files. Damaged ones are skipped with a line that says which and why. Empty when the folder holds
/// no checkpoint; Error(checkpoint) when all of them are damaged, Error(environment) when one
/// cannot be read for lack of a permission or of memory.
std::optional<CheckpointReader> open_newest(comm::Communicator& control,
                                            const std::filesystem::path& folder, const LogLine& log,
                                            std::int64_t latest_step = kAnyStep);

/// Which checkpoints load_newest() looks at.
struct NewestOptions {
  std::int64_t latest_step = kAnyStep;  ///< no later ones
  /// Called on every rank with each one before it is loaded. What LoadOptions::leave_out says may
  /// depend on it.
  std::function<void(const CheckpointReader&)> look_at{};
};

/// Collective: open_newest and load, continuing to the next older checkpoint when a block turns out
/// to be damaged; that one must fill each wanted tensor which the damaged one fills, so that no
/// value of the damaged one stays.
std::optional<CheckpointReader> load_newest(comm::Communicator& control,
                                            const std::filesystem::path& folder,
                                            std::span<const SliceView> wanted,
                                            const LoadOptions& options = {},
                                            const NewestOptions& which = {});

/// Collective: loads from a path that a person named. If it is a step folder, that one; else as
/// load_newest().
std::optional<CheckpointReader> load_named(comm::Communicator& control,
                                           const std::filesystem::path& path,
                                           std::span<const SliceView> wanted,
                                           const LoadOptions& options = {},
                                           const NewestOptions& which = {});

}  // namespace tessera::checkpoint
