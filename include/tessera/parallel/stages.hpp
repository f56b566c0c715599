// All pipeline stages of one rank.
#pragma once

#include <memory>
#include <vector>

#include "tessera/parallel/stage.hpp"
#include "tessera/parallel/stage_map.hpp"
#include "tessera/parallel/stage_split.hpp"

namespace tessera::parallel {

class Stages {
 public:
  /// Those of `ranges` that `map` puts on this rank of the mesh's pipeline. The model must outlive them. Collective
  /// over the mesh.
  Stages(const model::Model& model, const StageRanges& ranges, const StageMap& map, mesh::DeviceMesh& mesh,
         const StageOptions& options);

  const StageMap& map() const { return map_; }
  const StageOptions& options() const { return options_; }
  /// By its number in the pipeline; it must be on this rank.
  Stage& at(int stage);

  /// See Stage.
  void on_high_water(const std::function<void()>& look);
  void set_batch(std::int64_t batch);
  /// All stages of the rank share it in equal parts.
  void set_reshard_budget(std::int64_t bytes);
  std::int64_t scratch_bytes(int microbatches) const;
  void initialize(std::uint64_t seed);
  void begin_step(int microbatches);
  /// Waits for the reductions of all groups; sums what tensor parallelism and tied stages, wherever they are, left
  /// apart.
  void finish_gradients();
  void end_step();
  GatherCount gather_count() const;
  /// Tokens that each expert got in this step, summed over the ranks of each stage, by mixture of the model (undefined
  /// where other ranks hold it); evens the loads out if `update`. Collective over the ranks of the stages.
  std::vector<at::Tensor> balance_experts(bool update);
  double balance_loss() const;
  std::int64_t kept_bytes();
  /// What the stages have allocated now on the device of forward and backward; activations are not counted.
  MemoryKinds memory() const;
  /// Of all stages, in the order of the model; a tied parameter of two of them once.
  Params params();
  Params trained_params();
  Holdings holdings();
  std::vector<ShardGroup*> groups();

 private:
  void tie(mesh::DeviceMesh& mesh);
  void sum_tied();

  StageMap map_;
  StageOptions options_;
  std::vector<int> numbers_;
  std::vector<std::unique_ptr<Stage>> stages_;  ///< the numbers_[i]-th of the pipeline
  comm::Communicator* ends_ = nullptr;          ///< the ranks of the first and the last stage, if these are two
  std::unique_ptr<comm::Communicator> own_ends_;
};

}  // namespace tessera::parallel
