// What one rank holds of the model: a pipeline stage, its sharded parameters, and the tape between its units.
#pragma once

#include <torch/torch.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tessera/mesh/device_mesh.hpp"
#include "tessera/model/model.hpp"
#include "tessera/parallel/shard_group.hpp"
#include "tessera/parallel/unit.hpp"

namespace tessera::parallel {

/// When gathered weights are freed. `standard` is TorchTitan's default: after forward unless pipelined; the model's last unit stays.
enum class ReshardPolicy : std::uint8_t { standard, always, never };

struct StageOptions {
  Precision precision;
  ReshardPolicy reshard = ReshardPolicy::standard;
  std::int64_t recompute_every = 0;  ///< block i is recomputed in backward if i is a multiple of this; 0 = none
  bool deterministic = false;        ///< microbatches are added over the fixed tree
  torch::Device device = torch::kCPU;
  std::int64_t batch = 1;  ///< sequences of a microbatch
  std::int64_t seq = 1;    ///< positions of a sequence
};

class Stage {
 public:
  /// Units [units.begin, units.end()) of `model` for this rank of the mesh. The model must outlive the stage.
  Stage(const model::Model& model, Range units, mesh::DeviceMesh& mesh, const StageOptions& options);

  bool first() const { return first_; }
  bool last() const { return last_; }
  /// Shape of slot x at a cut in front of or behind this stage, on this rank: [T / tp, dim].
  std::vector<std::int64_t> boundary_shape() const;
  const StageOptions& options() const { return options_; }

  /// Draws the initial values of every parameter from (seed, fqn, global index): no communication, any mesh, the same bits.
  void initialize(std::uint64_t seed);

  /// Announces how many microbatches the step has, so that reductions start with the last backward of each group.
  void begin_step(int microbatches);
  /// One microbatch through all units; `loss` on the last stage only. The tape keeps what backward needs.
  /// Returns slot x for the next stage; `loss_value` (last stage) gets the scaled loss.
  model::Flow forward(int microbatch, const model::Flow& in, const LossInput* loss, torch::Tensor* loss_value);
  /// Gradient of the stage's output in (empty on the last stage), of its input out.
  model::Flow backward(int microbatch, model::Flow gradients);
  /// Waits for the reductions of all groups, and sums what tensor parallelism and tied stages left apart.
  void finish_gradients();
  /// Frees gathered weights and gradients' scratch; the optimizer may change the masters now.
  void end_step();

  /// Forward without tape or loss, for evaluation and generation.
  model::Flow infer(const model::Flow& in, model::CellContext context);

  struct ParamRef {
    ShardedParam* param;
    int replica = 0, replicas = 1;  ///< number of this copy among the ranks that hold the same box
    bool counted = true;            ///< this rank counts it for the global norm: one copy over all axes does
  };
  std::vector<ParamRef> params();
  std::vector<std::unique_ptr<ShardGroup>>& groups() { return groups_; }

 private:
  ShardGroup* group_of(const model::Model& model, int param) const;
  std::vector<ShardGroup*> make_groups(const model::Model& model, const model::UnitSpec& unit, const ShardAxes& axes);
  bool reshards(std::size_t unit) const;
  bool recomputes(std::size_t unit) const;
  void accumulate(ShardGroup& group, int microbatch);
  void sum_replicated();
  void sum_tied();

  mesh::DeviceMesh& mesh_;
  StageOptions options_;
  Range range_;
  std::int64_t model_units_;
  std::int64_t dim_;
  bool first_, last_;
  std::vector<std::unique_ptr<ShardGroup>> groups_;
  std::vector<Unit> units_;
  ShardGroup* tied_ = nullptr;  ///< the group of a weight that other stages hold too
  std::map<std::pair<int, std::size_t>, TapeEntry> tape_;
  std::map<ShardGroup*, int> uses_, pending_;
};

}  // namespace tessera::parallel
