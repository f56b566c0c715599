// Parameters that are gathered and reduced together: one unit's, sharded over the data-parallel axes (ZeRO-3 / FSDP,
// https://arxiv.org/abs/1910.02054, https://arxiv.org/abs/2304.11277), each cut by rows over the ranks of the fsdp axis.
#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

#include "tessera/base/shard.hpp"
#include "tessera/base/tensor_slice.hpp"
#include "tessera/comm/communicator.hpp"
#include "tessera/model/cell.hpp"
#include "tessera/model/param_spec.hpp"

namespace tessera::parallel {

/// Types of a run: masters, moments and accumulated gradients; forward and backward; what gradients are exchanged in.
struct Precision {
  torch::ScalarType master = torch::kFloat32;
  torch::ScalarType compute = torch::kFloat32;
  torch::ScalarType reduce = torch::kFloat32;
};

/// The communicators that a group needs.
struct ShardAxes {
  comm::Communicator* tp = nullptr;
  comm::Communicator* fsdp = nullptr;       ///< dp_shard x cp: parameters are sharded here
  comm::Communicator* replicate = nullptr;  ///< dp_replicate: shards are copies here
};

/// One parameter on this rank.
struct ShardedParam {
  const model::ParamSpec* spec = nullptr;
  Shape local_shape;           ///< this tensor-parallel rank's piece of the whole
  Shape local_offset;          ///< and where it begins
  Range rows;                  ///< this fsdp rank's rows of that piece
  std::int64_t chunk_rows = 0; ///< rows of every fsdp rank but the last ones
  std::int64_t flat_begin = 0; ///< first element in the group's flat buffers
  torch::Tensor master;        ///< [rows.size, ...] in Precision::master
  torch::Tensor gradient;      ///< the same shape: summed over the job once finish_reduction() returned
  torch::Tensor storage;       ///< [fsdp * chunk_rows, ...] in Precision::compute, memory only while gathered
  torch::Tensor leaf;          ///< the first rows of `storage` as autograd sees them

  std::int64_t row_elements() const;
  /// True if every rank of tp holds the same piece (and each has a part of the gradient).
  bool replicated_over_tp() const { return spec->placement == model::Placement::replicated; }
  /// The box of the whole parameter that `master` is, as checkpoints name it.
  TensorSlice slice(const std::string& prefix) const;
};

class ShardGroup {
 public:
  /// Cuts `specs` and allocates masters (zero) and gradients. Throws Error(usage) if tp does not divide a parameter.
  ShardGroup(std::string name, const std::vector<const model::ParamSpec*>& specs, const ShardAxes& axes,
             const Precision& precision, torch::Device device);

  const std::string& name() const { return name_; }
  std::vector<ShardedParam>& params() { return params_; }
  const std::vector<ShardedParam>& params() const { return params_; }

  /// Starts the all_gather if the weights are not there; the data may be used after finish_unshard().
  void start_unshard();
  void finish_unshard();
  /// Frees the gathered weights. Graphs that hold them stay valid if they are gathered again before backward.
  void reshard();
  bool gathered() const { return gathered_; }
  /// Index of `spec` among params(), -1 if it is not here.
  int find(const model::ParamSpec* spec) const;

  /// Takes the gradients that autograd left in the leaves and adds them to those of earlier microbatches: in the order of
  /// the calls, or, if `tree`, over the fixed binary tree of microbatch numbers (numerics.md: deterministic order).
  void accumulate(std::int64_t microbatch, bool tree);
  /// Sums the accumulated gradients over fsdp, then replicate; ShardedParam::gradient holds them after finish_reduction().
  /// Sums over tp (replicated parameters) and over tied stages are the caller's, on the result.
  void start_reduction();
  void finish_reduction();
  /// Forgets gathered weights (the optimizer is about to change the masters) and gradients.
  void end_step();

  torch::Tensor flat_gradient() const { return flat_gradient_; }
  std::int64_t gathers() const { return gathers_; }             ///< all_gathers started so far
  std::int64_t gathered_bytes() const { return gathered_bytes_; }  ///< bytes received by them

 private:
  struct Partial {  ///< gradients of 2^level microbatches
    int level;
    std::int64_t last;
    torch::Tensor flat;
  };
  bool aliased() const { return fsdp_.size() == 1 && precision_.compute == precision_.master; }
  void place(const model::ParamSpec& spec, const ShardAxes& axes);
  void allocate(torch::Device device);
  void copy_out();
  torch::Tensor accumulator(const ShardedParam& param, const torch::Tensor& flat) const;
  void add_leaf_gradient(ShardedParam& param, const torch::Tensor& flat, bool first);
  void merge();

  std::string name_;
  Precision precision_;
  comm::Communicator& fsdp_;
  comm::Communicator& replicate_;
  std::vector<ShardedParam> params_;
  std::int64_t chunk_elements_ = 0;  ///< elements of one rank's part of the flat buffers
  torch::Tensor flat_master_, flat_gradient_;
  torch::Tensor gather_in_, gather_out_;
  std::vector<Partial> partials_;
  torch::Tensor reduce_in_, reduce_out_;
  comm::Request gather_, reduction_;
  bool gathered_ = false, gathering_ = false, reducing_ = false;
  std::int64_t gathers_ = 0, gathered_bytes_ = 0;
};

}  // namespace tessera::parallel
