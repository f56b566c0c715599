// What one rank holds of the model: a pipeline stage, its sharded parameters, and the tape between its units.
#pragma once

#include <torch/torch.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/mesh/device_mesh.hpp"
#include "tessera/model/model.hpp"
#include "tessera/parallel/context_attention.hpp"
#include "tessera/parallel/expert_parallel.hpp"
#include "tessera/parallel/reshard_policy.hpp"
#include "tessera/parallel/shard_group.hpp"
#include "tessera/parallel/unit.hpp"

namespace tessera::parallel {

/// Where gradients of microbatches add up before the reduction over data-parallel ranks.
enum class Accumulation : std::uint8_t {
  unsharded,  ///< whole on each rank: one reduce_scatter a step
  sharded,    ///< in this rank's shard: one reduce_scatter a microbatch, and 1/fsdp of the memory
};

struct StageOptions {
  Precision precision;
  ReshardPolicy reshard;
  std::vector<ReshardRule> reshard_rules;
  std::int64_t reshard_budget_bytes = 0;  ///< what policy auto may keep; the same on all ranks
  Accumulation accumulation = Accumulation::unsharded;
  std::vector<std::string> freeze;   ///< parameters whose name one of these patterns matches are not trained
  bool offload = false;              ///< masters, gradients and moments in host memory
  std::int64_t recompute_every = 0;  ///< block i is recomputed in backward if i is a multiple of this; 0 = none
  bool sequence_parallel = true;     ///< see TensorParallel
  bool loss_parallel = true;
  bool deterministic = false;  ///< microbatches are added over the fixed tree
  torch::Device device = torch::kCPU;
  std::int64_t batch = 1;  ///< sequences of a microbatch
  std::int64_t seq = 1;    ///< positions of a sequence on this rank
  SequenceCut cut;         ///< of sequences over context-parallel ranks; by default nobody shares them
  Rotation rotation = Rotation::ring;
};

/// One tensor that crosses a cut.
struct Crossing {
  model::Slot slot;
  std::vector<std::int64_t> shape;  ///< on this rank
  torch::ScalarType type;
};

class Stage {
 public:
  /// Cells [cells.begin, cells.end()) of `model` for this rank of the mesh: units, and parts of units at its ends. The
  /// model must outlive the stage.
  Stage(const model::Model& model, Range cells, mesh::DeviceMesh& mesh, const StageOptions& options);

  bool first() const { return first_; }
  bool last() const { return last_; }
  /// What crosses the cut in front of (behind) this stage, as it lies on this rank; empty at the model's ends.
  const std::vector<Crossing>& inputs() const { return inputs_; }
  const std::vector<Crossing>& outputs() const { return outputs_; }
  const StageOptions& options() const { return options_; }

  /// Draws the initial values of every parameter from (seed, fqn, global index): no communication, any mesh, the same
  /// bits.
  void initialize(std::uint64_t seed);

  /// Announces how many microbatches the step has, so that reductions start with the last backward of each group.
  void begin_step(int microbatches);
  /// Before the forward of a microbatch of packed documents: where they begin; without it, or with no lists, sequences
  /// are whole texts. Known until the next begin_step(), for whatever is recomputed.
  void set_documents(int microbatch, Documents documents);
  /// One microbatch through all units; `loss` on the last stage only. The tape keeps what backward needs.
  /// Returns the slots of outputs(); `loss_value` (last stage) gets the scaled loss.
  model::Flow forward(int microbatch, const model::Flow& in, const LossInput* loss, torch::Tensor* loss_value);
  /// Gradients of outputs() in (empty on the last stage), of inputs() out.
  model::Flow backward(int microbatch, model::Flow gradients);
  /// Waits for the reductions of all groups, and sums what tensor parallelism and tied stages left apart.
  void finish_gradients();
  /// Frees gathered weights and gradients' scratch; the optimizer may change the masters now.
  void end_step();

  /// Forward without tape or loss, for evaluation and generation.
  model::Flow infer(const model::Flow& in, model::CellContext context);

  /// What the policies ask for: all_gathers and bytes received so far, bytes of weights kept between forward and
  /// backward.
  GatherCount gather_count() const;
  /// Tokens that each expert got in this step, summed over all ranks of the stage, by mixture of the model (undefined
  /// for other stages'); evens the loads out by the biases of the choice if `update`, and forgets the counts.
  /// Collective over the ranks of the stage.
  std::vector<torch::Tensor> balance_experts(bool update);
  /// This rank's part of the step's balance loss; other ranks hold the rest.
  double balance_loss() const { return balance_loss_; }
  /// By buffer of the model; undefined where other stages hold it.
  std::vector<torch::Tensor>& buffers() { return buffers_; }
  std::int64_t kept_bytes() const;

  struct ParamRef {
    ShardedParam* param;
    int replica = 0, replicas = 1;  ///< number of this copy among the ranks that hold the same box
    bool counted = true;            ///< this rank counts it for the global norm: one copy over all axes does
  };
  std::vector<ParamRef> params();
  /// Those of params() that are not frozen.
  std::vector<ParamRef> trained_params();
  std::vector<std::unique_ptr<ShardGroup>>& groups() { return groups_; }

 private:
  ContextOperations operations_of(int microbatch) const;
  model::CellContext context_with(const model::Operations& operations) const;
  void make_buffers(const model::Model& model, Range cells);
  void make_unit(const model::Model& model, const model::UnitSpec& spec, std::int64_t number, const ShardAxes& axes);
  TensorParallel tensor_parallel() const;
  std::vector<Crossing> crossings(const model::Model& model, std::int64_t cell) const;
  ShardGroup* group_of(const model::Model& model, int param) const;
  std::vector<ShardGroup*> make_groups(const model::Model& model, const model::UnitSpec& unit, const ShardAxes& axes);
  ShardGroup* make_group(const std::string& name, const std::vector<const model::ParamSpec*>& specs,
                         const ShardAxes& axes);
  bool frozen(const model::ParamSpec& spec) const;
  void check_patterns(const model::Model& model) const;
  void resolve_policies(comm::Communicator& fsdp);
  void reshard(std::size_t unit);
  bool recomputes(std::size_t unit) const;
  void accumulate(ShardGroup& group, int microbatch);
  void sum_replicated();
  void sum_pieces(std::vector<torch::Tensor>& pieces, comm::Communicator& over) const;
  void sum_tied();

  mesh::DeviceMesh& mesh_;
  std::unique_ptr<comm::Communicator> alone_ = comm::make_self_communicator("one rank");
  StageOptions options_;
  std::int64_t model_units_;
  bool first_, last_;
  std::vector<Crossing> inputs_, outputs_;
  std::vector<std::unique_ptr<ShardGroup>> groups_;
  std::vector<Unit> units_;
  std::vector<std::int64_t> numbers_;                              ///< of units_ among the model's units
  std::vector<UnitReshard> reshards_;                              ///< of units_
  std::map<int, std::unique_ptr<comm::Communicator>> neighbours_;  ///< groups of k ranks of the fsdp axis, by k
  std::map<int, std::unique_ptr<comm::Communicator>>
      copies_;                  ///< tensor-parallel ranks that hold the same heads, by their number
  ShardGroup* tied_ = nullptr;  ///< the group of a weight that other stages hold too
  std::optional<ExpertExchange> exchange_;
  std::vector<torch::Tensor> buffers_;
  std::vector<model::MixtureSpec> mixtures_;
  model::ExpertLoads loads_;
  double balance_loss_ = 0, balance_scale_ = 1;
  std::map<std::pair<int, std::size_t>, TapeEntry> tape_;
  std::vector<Range> positions_;                               ///< of each sequence on this rank, if ranks share them
  std::map<int, std::shared_ptr<const Documents>> documents_;  ///< by microbatch
  std::map<ShardGroup*, int> uses_, pending_;  ///< units that use a group; backward passes that are still to come
};

}  // namespace tessera::parallel
