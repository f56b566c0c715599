// SPDX-License-Identifier: Apache-2.0
// Weights that are gathered together: one unit's, sharded over the data-parallel axes (ZeRO-3 /
// FSDP, https://arxiv.org/abs/1910.02054, https://arxiv.org/abs/2304.11277), each cut by rows over
// the ranks of the fsdp axis. GradientReducer sums their gradients.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <string>
#include <vector>

#include "tessera/comm/communicator.hpp"
#include "tessera/kernels/side_stream.hpp"
#include "tessera/model/cell.hpp"
#include "tessera/model_spec/param_spec.hpp"
#include "tessera/parallel/kept_copy.hpp"
#include "tessera/parallel/memory_kinds.hpp"
#include "tessera/parallel/weight_scales.hpp"
#include "tessera/plan/placement.hpp"

namespace tessera::parallel {

/// Types of a run: masters; forward and backward; what gradients are exchanged in.
struct Precision {
  at::ScalarType master = at::kFloat;
  at::ScalarType compute = at::kFloat;
  at::ScalarType reduce = at::kFloat;

  /// As plan::PrecisionPlan::gradient().
  at::ScalarType gradient() const { return master == at::kBFloat16 ? reduce : master; }
};

/// How a step ends.
enum class StepEnd : std::uint8_t {
  done,
  abandoned  ///< nothing of it has run: it was captured for a graph that is not made
};

/// How a group keeps its tensors.
struct GroupOptions {
  Precision precision;
  at::Device device = at::kCPU;  ///< forward and backward
  bool offload = false;   ///< masters, gradients and moments in host memory; weights are copied up
                          ///< for each gather
  bool trainable = true;  ///< false: no gradient, no reduction
  /// Buffers of gathers and reductions are memory that their communicator has registered.
  bool register_buffers = false;
  /// a group of the same parameters, whose masters are this one's too
  const class ShardGroup* home = nullptr;
  /// With `offload`: copies between the two memories; its owner outlives the group.
  kernels::SideStream* copies = nullptr;
  /// Where parameters are gathered in bytes: their scales; its owner outlives the group.
  WeightScales* scales = nullptr;
};

/// A parameter and where it is stored.
struct PlacedParam {
  const model::ParamSpec* spec = nullptr;
  plan::Placement place;
  bool in_bytes = false;  ///< gathered in float8 (e4m3): a matrix
};

/// All_gathers of a group or stage so far, as this rank saw them.
struct GatherCount {
  std::int64_t gathers = 0;
  std::int64_t bytes = 0;  ///< received
  GatherCount& operator+=(const GatherCount& more) {
    gathers += more.gathers;
    bytes += more.bytes;
    return *this;
  }
  GatherCount operator-(const GatherCount& before) const {
    return {gathers - before.gathers, bytes - before.bytes};
  }
};

/// One parameter on this rank.
struct ShardedParam {
  const model::ParamSpec* spec = nullptr;
  plan::Placement place;
  std::int64_t flat_begin = 0;    ///< first element in the group's flat buffers
  std::int64_t gather_begin = 0;  ///< first byte in what this rank gives to a gather
  bool in_bytes = false;          ///< it is gathered in float8
  at::Tensor master;              ///< [rows.size, ...] in Precision::master
  /// The same shape: summed over the job by GradientReducer::finish(); undefined if frozen.
  at::Tensor gradient;
  /// [fsdp * chunk_rows, ...] in Precision::compute, or in bytes, in the group's memory, which is
  /// there only while gathered: behind the parameter before, with a gap only where a flat buffer
  /// has one
  at::Tensor storage;
  /// The first rows of `storage` as autograd sees them. In bytes: no memory, but a name for the
  /// gradient.
  at::Tensor leaf;
  kernels::ScaledBytes bytes;  ///< in bytes: what `leaf` stands for

  /// Elements of one fsdp rank's rows.
  std::int64_t chunk_elements() const { return place.chunk_rows * place.row_elements(); }
  /// This rank's rows in a flat buffer of the group.
  at::Tensor in(const at::Tensor& flat) const;
  /// The box of the whole parameter that `master` is, as checkpoints name it.
  TensorSlice slice(const std::string& prefix) const;
};

class ShardGroup {
 public:
  /// Allocates masters (zero). At least one parameter; all are on the ranks of `fsdp`, which is
  /// dp_shard x cp, or efsdp for experts.
  ShardGroup(std::string name, std::vector<PlacedParam> params, comm::Communicator& fsdp,
             const GroupOptions& options);

  const std::string& name() const { return name_; }
  const GroupOptions& options() const { return options_; }
  comm::Communicator& fsdp() const { return fsdp_; }
  std::vector<ShardedParam>& params() { return params_; }
  const std::vector<ShardedParam>& params() const { return params_; }

  /// Starts the all_gather if the weights are not there; the data may be used after
  /// finish_unshard().
  void start_unshard();
  void finish_unshard();
  /// Frees the gathered weights. Graphs that hold them stay valid if they are gathered again before
  /// backward.
  void reshard();
  /// The same, but this rank keeps its part among the ranks of `inner` (neighbours on the fsdp
  /// axis), and until end_step() weights are gathered from these.
  void reshard_within(comm::Communicator& inner);
  /// Masters of all parameters of this rank, one after the other, with gaps of zeros.
  const at::Tensor& flat_master() const { return flat_master_; }
  /// Elements of one rank's part of the flat buffers.
  std::int64_t chunk_elements() const { return chunk_elements_; }
  /// Of tensors other than the masters.
  at::TensorOptions master_options() const;
  /// Bytes of the gathered weights.
  std::int64_t gathered_bytes() const;
  /// Whoever writes masters says so.
  void mark_stale();
  /// What this group has allocated now on the device of forward and backward.
  void add_memory(MemoryKinds& kinds) const;
  /// Moves the leaves' gradients out, and back in later.
  std::vector<at::Tensor> take_leaf_gradients();
  void put_leaf_gradients(const std::vector<at::Tensor>& gradients);
  /// Forgets gathered weights: the optimizer is about to change the masters. Memory of a kept copy
  /// stays. Of a step that is abandoned, forgets gradients in leaves and a gather under way, too.
  void end_step(StepEnd how = StepEnd::done);
  /// In place of weights that are gathered and freed, where it is kept.
  KeptCopy& kept_copy() { return copy_; }
  /// Of all gathers so far. Whoever launches a graph adds those in it.
  GatherCount& gather_count() { return gather_count_; }

 private:
  enum class Weights : std::uint8_t { freed, gathering, gathered };
  bool aliased() const {
    return fsdp_.size() == 1 && options_.precision.compute == options_.precision.master &&
           !options_.offload && !options_.scales;
  }
  /// In bytes.
  struct Gather {
    at::Tensor in;   ///< [chunk_bytes], or Kept::part; a part of `out` where that is registered
    at::Tensor out;  ///< [ranks, of each of them]
    comm::Request request;
  };
  /// Of masters in host memory: on their way to the device.
  struct Upload {
    at::Tensor staged;
    kernels::SideStream::Mark done;
  };
  /// Of reshard_within().
  struct Kept {
    at::Tensor part;  ///< [fsdp / inner, chunk_bytes]: this rank's among `inner`
    comm::Communicator* inner = nullptr;
  };
  bool may_keep_copy() const;
  void add(PlacedParam placed);
  void allocate();
  void show_weights(ShardedParam& param);
  at::Tensor leaf_without_memory(ShardedParam& param, const at::Tensor& weight) const;
  std::int64_t element_bytes(const ShardedParam& param) const;
  void register_gather(comm::Communicator& from);
  at::Tensor packed(const at::Tensor& masters) const;
  void pack(const at::Tensor& masters, const at::Tensor& into) const;
  at::Tensor part_of(const at::Tensor& gathered, std::size_t i) const;
  void start_gather(comm::Communicator& from);
  void abandon_step();
  void upload();
  void take_over();
  void copy_out();

  std::string name_;
  GroupOptions options_;
  comm::Communicator& fsdp_;
  std::vector<ShardedParam> params_;
  std::int64_t chunk_elements_ = 0;
  std::int64_t chunk_bytes_ = 0;  ///< what one rank gives to a gather
  at::Tensor flat_master_;
  at::Tensor weights_memory_;  ///< bytes of all ShardedParam::storage; the masters' if aliased()
  /// Of each parameter [fsdp, what one rank gives to a gather], unless aliased(): as elements of
  /// Precision::compute, or as bytes where a flat buffer has gaps.
  std::vector<at::Tensor> parts_;
  KeptCopy copy_;
  Gather gather_;
  Kept kept_;
  Upload upload_;
  Weights weights_ = Weights::freed;
  GatherCount gather_count_;
};

/// Are its parameters experts', sharded over other ranks than the rest?
inline bool has_experts(const ShardGroup& group) {
  return model::counts_experts(group.params().front().spec->placement);
}

/// Bytes that a gather reads and writes.
std::int64_t gather_bytes(const ShardGroup& group);

/// Have its flat buffers no gaps?
bool is_dense(const ShardGroup& group);

/// Index of `spec` among `params`, -1 if it is not there.
int find(const std::vector<ShardedParam>& params, const model::ParamSpec* spec);

}  // namespace tessera::parallel
