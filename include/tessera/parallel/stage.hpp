// What one rank holds of the model: a pipeline stage, its sharded parameters, and the tape between its units.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/mesh/device_mesh.hpp"
#include "tessera/model/model.hpp"
#include "tessera/parallel/context_attention.hpp"
#include "tessera/parallel/expert_parallel.hpp"
#include "tessera/parallel/gradient_reducer.hpp"
#include "tessera/parallel/linear.hpp"
#include "tessera/parallel/recompute.hpp"
#include "tessera/parallel/reshard_policy.hpp"
#include "tessera/parallel/shard_group.hpp"
#include "tessera/parallel/unit.hpp"

namespace tessera::parallel {

/// Where gradients of microbatches add up before the reduction over data-parallel ranks.
enum class Accumulation : std::uint8_t {
  standard,   ///< as FSDP2 in TorchTitan: sharded, but unsharded in a pipeline; also where the order is deterministic
  unsharded,  ///< whole on each rank: one reduce_scatter a step
  sharded,    ///< in this rank's shard: one reduce_scatter a microbatch, and 1/fsdp of the memory
};

struct StageOptions {
  Precision precision;
  ReshardPolicy reshard;
  std::vector<ReshardRule> reshard_rules;
  Accumulation accumulation = Accumulation::standard;
  std::vector<std::string> freeze;  ///< parameters whose name one of these patterns matches are not trained
  bool offload = false;             ///< masters, gradients and moments in host memory
  RecomputePolicy recompute;        ///< of blocks
  bool sequence_parallel = true;    ///< see TensorParallel
  bool loss_parallel = true;
  int token_chunks = 0;        ///< > 0: tokens travel around tensor-parallel products in this many chunks
  bool overlap_chunks = true;  ///< see TokenChunks
  bool deterministic = false;  ///< microbatches are added over the fixed tree
  at::Device device = at::kCPU;
  std::int64_t batch = 1;  ///< sequences of a microbatch
  std::int64_t seq = 1;    ///< positions of a sequence on this rank
  SequenceCut cut;         ///< of sequences over context-parallel ranks; by default nobody shares them
  Rotation rotation = Rotation::ring;
};

/// How gradients of such stages are reduced. `pipelined`: there are several stages.
ReducerOptions reducer_options_of(const StageOptions& options, bool pipelined);

/// One tensor that crosses a cut.
struct Crossing {
  model::Slot slot;
  std::vector<std::int64_t> shape;  ///< on this rank
  at::ScalarType type;
};

/// Parameters of this rank; their groups own them.
using Params = std::vector<ShardedParam*>;

/// A weight that the first and the last stage of a pipeline use.
struct TiedWeight {
  int holders = 2;                   ///< pipeline ranks that have one of these stages
  const ShardGroup* home = nullptr;  ///< its group in the first stage, if that is on this rank too
};

/// What a rank holds of the model.
struct Holdings {
  Params params;
  std::vector<at::Tensor> buffers;  ///< by buffer of the model; undefined where other ranks hold it
};

/// What a forward pass gives.
struct StagePass {
  model::Flow flow;         ///< the slots of outputs(); empty on the last stage
  at::Tensor loss;          ///< on the last stage: scaled, without a graph
  at::Tensor token_losses;  ///< on the last stage: unscaled, [T]
};

/// What a backward pass computes.
enum class Backward : std::uint8_t {
  whole,   ///< all gradients
  inputs,  ///< the input's; those of weights are left for backward_weights()
};

class Stage {
 public:
  /// Cells [cells.begin, cells.end()) of `model` for this rank of the mesh: units, and parts of
  /// units at its ends. Model and reducer must outlive the stage; `reducer` sums its gradients.
  Stage(const model::Model& model, Range cells, mesh::DeviceMesh& mesh, const StageOptions& options,
        GradientReducer& reducer, const TiedWeight& tied = {});
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  bool first() const { return first_; }
  bool last() const { return last_; }
  /// What crosses the cut in front of (behind) this stage, as it lies on this rank; empty at the model's ends.
  const std::vector<Crossing>& inputs() const { return inputs_; }
  const std::vector<Crossing>& outputs() const { return outputs_; }
  const StageOptions& options() const { return options_; }
  /// Bytes that reshard policy auto may keep; 0 until it is called, between steps. The same on all ranks.
  void set_reshard_budget(std::int64_t bytes);
  /// What a step of so many microbatches takes on the device beside activations and kept weights, as an upper bound:
  /// gradients that wait for their reduction, and what collectives read and write.
  std::int64_t scratch_bytes(int microbatches) const;
  /// Sequences of a microbatch from the next step on.
  void set_batch(std::int64_t batch);

  /// Draws the initial values of every parameter from (seed, fqn, global index): no communication, any mesh, the same
  /// bits.
  void initialize(std::uint64_t seed);

  /// Announces how many microbatches the step has; GradientReducer::begin_step() goes with it.
  void begin_step(int microbatches);
  /// Before the forward of a microbatch of packed documents: where they begin; without it, or with no lists, sequences
  /// are whole texts. Known until the next begin_step(), for whatever is recomputed.
  void set_documents(int microbatch, Documents documents);
  /// One microbatch through all units; `loss` on the last stage only. The tape keeps what backward needs.
  StagePass forward(int microbatch, const model::Flow& in, const LossInput* loss);
  /// Gradients of outputs() in (empty on the last stage), of inputs() out.
  model::Flow backward(int microbatch, model::Flow gradients, Backward what = Backward::whole);
  /// The rest of backward(..., Backward::inputs): together they give the bits of a whole one.
  void backward_weights(int microbatch);
  /// Frees gathered weights; the optimizer may change the masters now.
  void end_step();

  /// Forward without tape or loss, for generation.
  model::Flow infer(const model::Flow& in, const model::CellContext& context);
  /// forward() without a tape, for evaluation: the same token losses and no `loss`, and nothing is
  /// left but gathered weights, which end_step() frees. Experts' loads do not count.
  StagePass evaluate(int microbatch, const model::Flow& in, const LossInput* loss);

  /// What the policies ask for: all_gathers and bytes received so far, bytes of weights kept between forward and
  /// backward.
  GatherCount gather_count() const;
  /// Tokens that each expert got in this step, summed over all ranks of the stage, by mixture of the model (undefined
  /// for other stages'); evens the loads out by the biases of the choice if `update`, and forgets the counts.
  /// Collective over the ranks of the stage.
  std::vector<at::Tensor> balance_experts(bool update);
  /// This rank's part of the step's balance loss; other ranks hold the rest.
  double balance_loss() const { return balance_loss_; }
  Holdings holdings() { return {params(), buffers_}; }
  std::int64_t kept_bytes();

  /// Without a tied one that has its home in another stage of this rank.
  Params params();
  /// Those of params() that are not frozen.
  Params trained_params();
  std::vector<std::unique_ptr<ShardGroup>>& groups() { return groups_; }
  const std::vector<std::unique_ptr<ShardGroup>>& groups() const { return groups_; }
  /// Called in forward and backward where much memory is allocated: behind each unit's pass. Null: nobody.
  void on_high_water(std::function<void()> look) { look_ = std::move(look); }
  /// The group of a weight that another stage uses too; null if there is none.
  ShardGroup* tied() { return tied_; }
  /// Where autograd functions of this stage's cells may leave gradients of weights for backward_weights().
  WeightGradients& weight_gradients() { return weight_gradients_; }

 private:
  using PassKey = std::pair<int, std::size_t>;  ///< microbatch, unit
  /// What backward left for later, of one unit.
  struct Owed {
    WeightGradients::Work work;
    std::vector<std::vector<at::Tensor>> gradients;  ///< that the leaves of its groups have already
  };
  StagePass pass(const model::Flow& in, const model::CellContext& context, const LossInput* loss);
  ContextOperations operations_of(int microbatch) const;
  model::CellContext context_with(const model::Operations& operations) const;
  void make_buffers();
  void make_unit(const model::UnitSpec& spec, std::int64_t number);
  TensorParallel tensor_parallel();
  std::vector<Crossing> crossings(std::int64_t cell) const;
  ShardGroup* group_of(const model::ParamSpec* param) const;
  std::vector<ShardGroup*> make_groups(const model::UnitSpec& unit);
  ShardGroup* make_group(const std::string& name, const std::vector<const model::ParamSpec*>& specs, bool tied);
  bool frozen(const model::ParamSpec& spec) const;
  void check_patterns() const;
  void resolve_policies(std::int64_t budget_bytes);
  comm::Communicator& neighbours(int ranks);
  comm::Communicator* expert_neighbours(int ranks);
  void reshard(std::size_t unit);
  bool is_block(std::size_t unit) const;
  void resolve_recompute();
  TapeEntry measured_forward(std::size_t unit, const model::Flow& in, const model::CellContext& context);
  void choose_recompute();
  Owed take_owed(std::size_t unit);

  const model::Model& model_;
  Range cells_;
  mesh::DeviceMesh& mesh_;
  StageOptions options_;
  std::int64_t model_units_;
  bool first_, last_;
  std::vector<Crossing> inputs_, outputs_;
  std::optional<kernels::SideStream> copies_;  ///< of groups that are off-loaded
  std::vector<std::unique_ptr<ShardGroup>> groups_;
  std::vector<Unit> units_;
  std::vector<std::int64_t> numbers_;         ///< of units_ among the model's units
  std::vector<UnitReshard> reshards_;         ///< of units_
  std::vector<Recompute> recompute_;          ///< of units_
  std::vector<ActivationBytes> activations_;  ///< of units_; while the budget's choice is open
  TiedWeight tied_weight_;
  ShardGroup* tied_ = nullptr;  ///< the group of a weight that another stage uses too
  GradientReducer& reducer_;
  WeightGradients weight_gradients_;
  LinearOperations operations_{model::plain_operations(), weight_gradients_};
  std::optional<ExpertExchange> exchange_;
  std::vector<at::Tensor> buffers_;
  model::ExpertLoads loads_;
  double balance_loss_ = 0, balance_scale_ = 1;
  std::map<PassKey, TapeEntry> tape_;
  std::map<PassKey, Owed> owed_;
  std::vector<Range> positions_;                               ///< of each sequence on this rank, if ranks share them
  std::map<int, std::shared_ptr<const Documents>> documents_;  ///< by microbatch
  std::function<void()> look_;
};

}  // namespace tessera::parallel
