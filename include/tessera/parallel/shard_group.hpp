// Parameters that are gathered and reduced together: one unit's, sharded over the data-parallel axes (ZeRO-3 / FSDP,
// https://arxiv.org/abs/1910.02054, https://arxiv.org/abs/2304.11277), each cut by rows over the ranks of the fsdp
// axis.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <string>
#include <vector>

#include "tessera/comm/communicator.hpp"
#include "tessera/kernels/side_stream.hpp"
#include "tessera/model/cell.hpp"
#include "tessera/model_spec/param_spec.hpp"
#include "tessera/parallel/memory_kinds.hpp"
#include "tessera/parallel/placement.hpp"

namespace tessera::parallel {

/// Types of a run: masters, moments and accumulated gradients; forward and backward; what gradients are exchanged in.
struct Precision {
  at::ScalarType master = at::kFloat;
  at::ScalarType compute = at::kFloat;
  at::ScalarType reduce = at::kFloat;
};

/// How a group keeps its tensors.
struct GroupOptions {
  Precision precision;
  at::Device device = at::kCPU;  ///< forward and backward
  bool offload = false;   ///< masters, gradients and moments in host memory; weights are copied up for each gather
  bool trainable = true;  ///< false: no gradient, no reduction
  const class ShardGroup* home = nullptr;  ///< a group of the same parameters, whose masters are this one's too
  /// With `offload`: copies between the two memories; its owner outlives the group.
  kernels::SideStream* copies = nullptr;
};

/// The communicators of a group.
struct ShardAxes {
  comm::Communicator* fsdp = nullptr;       ///< dp_shard x cp, of experts efsdp: shards the weights
  comm::Communicator* replicate = nullptr;  ///< dp_replicate: shards are copies here
};

/// A parameter and where it lies.
struct PlacedParam {
  const model::ParamSpec* spec = nullptr;
  Placement place;
};

/// All_gathers of a group or stage so far, as this rank saw them.
struct GatherCount {
  std::int64_t gathers = 0;
  std::int64_t bytes = 0;  ///< received
};

/// One parameter on this rank.
struct ShardedParam {
  const model::ParamSpec* spec = nullptr;
  Placement place;
  std::int64_t flat_begin = 0;  ///< first element in the group's flat buffers
  at::Tensor master;            ///< [rows.size, ...] in Precision::master
  at::Tensor gradient;  ///< the same shape: summed over the job once finish_reduction() returned; undefined if frozen
  at::Tensor storage;   ///< [fsdp * chunk_rows, ...] in Precision::compute, memory only while gathered
  at::Tensor leaf;      ///< the first rows of `storage` as autograd sees them

  /// Elements of one fsdp rank's rows.
  std::int64_t chunk_elements() const { return place.chunk_rows * place.row_elements(); }
  /// The box of the whole parameter that `master` is, as checkpoints name it.
  TensorSlice slice(const std::string& prefix) const;
};

class ShardGroup {
 public:
  /// Allocates masters (zero) and gradients. At least one parameter; all lie on the ranks of
  /// `axes`.
  ShardGroup(std::string name, std::vector<PlacedParam> params, const ShardAxes& axes, const GroupOptions& options);

  const std::string& name() const { return name_; }
  std::vector<ShardedParam>& params() { return params_; }
  const std::vector<ShardedParam>& params() const { return params_; }

  /// Starts the all_gather if the weights are not there; the data may be used after finish_unshard().
  void start_unshard();
  void finish_unshard();
  /// Frees the gathered weights. Graphs that hold them stay valid if they are gathered again before backward.
  void reshard();
  /// The same, but this rank keeps its part among the ranks of `inner` (neighbours on the fsdp axis), and until
  /// end_step() weights are gathered from these.
  void reshard_within(comm::Communicator& inner);
  bool gathered() const { return gathered_; }
  /// Masters of all parameters of this rank, one behind the other, with gaps of zeros.
  const at::Tensor& flat_master() const { return flat_master_; }
  /// Its parameters are experts', sharded over other ranks than the rest.
  bool of_experts() const { return model::counts_experts(params_.front().spec->placement); }
  bool trainable() const { return options_.trainable; }
  /// Its masters are those of GroupOptions::home.
  bool is_guest() const { return options_.home != nullptr; }
  /// Bytes of the gathered weights.
  std::int64_t gathered_bytes() const;
  /// Bytes of the gradients of one microbatch, or of a partial sum of them, until they are reduced.
  std::int64_t accumulator_bytes() const;
  /// Bytes that a gather or a reduction reads and writes beside weights and those gradients.
  std::int64_t collective_bytes() const;
  /// What this group has allocated now on the device of forward and backward.
  void add_memory(MemoryKinds& kinds) const;
  /// Index of `spec` among params(), -1 if it is not here.
  int find(const model::ParamSpec* spec) const;

  /// Takes the gradients that autograd left in the leaves and adds them to those of earlier microbatches: in the order
  /// of the calls, or, if `tree`, over the fixed binary tree of microbatch numbers (numerics.md: deterministic order),
  /// in whatever order they come; calls for the same microbatch follow each other.
  void accumulate(std::int64_t microbatch, bool tree);
  /// Moves the leaves' gradients out, and back in later.
  std::vector<at::Tensor> take_leaf_gradients();
  void put_leaf_gradients(const std::vector<at::Tensor>& gradients);
  /// Sums what was accumulated since the last call over fsdp and adds it to the gradient's shard; nothing to do for a
  /// frozen group.
  void start_reduction();
  /// The memory of what is reduced is free again, where a reduction is under way; else nothing.
  void wait_reduction();
  /// Waits, then sums over replicate: ShardedParam::gradient is whole.
  /// Sums over tp (replicated parameters) and over tied stages are the caller's, on the result.
  void finish_reduction();
  /// Forgets gathered weights (the optimizer is about to change the masters) and gradients.
  void end_step();

  at::Tensor flat_gradient() const { return flat_gradient_; }
  /// Sums the gradient over a communicator of this group's device, wherever the gradient is kept.
  void sum_gradient(comm::Communicator& over);
  /// Adds that of another group of the same parameters.
  void add_gradient(const ShardGroup& other);
  const GatherCount& gather_count() const { return gather_count_; }

 private:
  struct Partial {  ///< gradients of 2^level microbatches, the index-th such
    int level;
    std::int64_t index;
    at::Tensor flat;
    std::int64_t first() const { return index << level; }
  };
  bool aliased() const {
    return fsdp_.size() == 1 && options_.precision.compute == options_.precision.master && !options_.offload;
  }
  /// Nothing is exchanged over fsdp: microbatches add up in the gradient itself.
  bool adds_in_place() const {
    return fsdp_.size() == 1 && options_.precision.reduce == options_.precision.master && !options_.offload;
  }
  void add(PlacedParam placed);
  void allocate();
  void allocate_weights(ShardedParam& param);
  void start_gather(comm::Communicator& from);
  void upload();
  void copy_out();
  void land();
  void settle();
  at::Tensor accumulator(const ShardedParam& param, const at::Tensor& flat) const;
  void add_leaf_gradient(ShardedParam& param, const at::Tensor& flat, bool first);
  void merge();
  bool merge_last();

  std::string name_;
  GroupOptions options_;
  comm::Communicator& fsdp_;
  comm::Communicator& replicate_;
  std::vector<ShardedParam> params_;
  std::int64_t chunk_elements_ = 0;  ///< elements of one rank's part of the flat buffers
  at::Tensor flat_master_, flat_gradient_;
  at::Tensor gather_in_, gather_out_;
  at::Tensor kept_;  ///< [fsdp / inner, chunk_elements]: this rank's part among `inner_`
  comm::Communicator* inner_ = nullptr;
  std::vector<Partial> partials_;
  at::Tensor reduce_in_, reduce_out_;
  at::Tensor staged_;                   ///< of masters in host memory: on their way to the device
  at::Tensor landing_from_, landing_;   ///< gradients on their way to host memory, and where others are there already
  kernels::SideStream::Mark uploaded_;  ///< of staged_
  kernels::SideStream::Mark landed_;
  bool landing_under_way_ = false, adds_landing_ = false;
  comm::Request gather_, reduction_;
  bool gathered_ = false, gathering_ = false, reducing_ = false;
  bool reduced_ = false;  ///< this step's gradient holds something
  GatherCount gather_count_;
};

}  // namespace tessera::parallel
