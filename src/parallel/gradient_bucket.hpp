// SPDX-License-Identifier: Apache-2.0
// The gradient of one shard group: from the leaves of autograd to the sum in this rank's shard.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <optional>

#include "gradient_landing.hpp"
#include "partial_sums.hpp"
#include "tessera/parallel/shard_group.hpp"

namespace tessera::parallel {

class GradientBucket {
 public:
  /// Allocates the gradient (zero) and shows it in ShardedParam::gradient. The group is trainable
  /// and outlives the bucket. `tree`: see PartialSums.
  GradientBucket(ShardGroup& group, comm::Communicator& replicate, bool tree);

  ShardGroup& group() const { return group_; }
  const at::Tensor& flat() const { return flat_; }
  bool reduces_over(plan::ReduceOver what) const;

  /// A unit of this rank uses the group.
  void add_user() { ++users_; }
  /// Every user is going to add the gradients of this many microbatches.
  void begin_step(int microbatches) { pending_ = users_ * microbatches; }
  /// Takes the gradients that autograd left in the leaves. True if the microbatch is complete.
  bool add(std::int64_t microbatch);
  /// All gradients of the step were added.
  bool complete() const { return pending_ == 0; }

  /// Sums what was added since the last call over fsdp; adds that to the shard when it is there.
  void start_reduction();
  /// The memory of what is reduced is free again, where a reduction is in progress; else nothing.
  void wait_reduction();
  /// Does a wait for the reduction hold streams alone, and not the host?
  bool reduces_on_streams() const;
  /// Is there a sum over dp_replicate that has not started?
  bool replicas_wait() const { return !replicas_summed_ && replicate_.size() > 1; }
  /// After wait_reduction(): sums the complete gradient over dp_replicate, once a step.
  void start_replicas();
  /// The same behind a reduction in progress that reduces_on_streams(): `beside` waits for it, so
  /// that the computation need not.
  void start_replicas(kernels::SideStream& beside);
  /// Waits for the sum over other ranks that is in progress, if any.
  void wait_sum();
  /// After start_replicas(): the gradient is summed over fsdp and dp_replicate, and is where the
  /// masters are.
  void finish();
  /// Sums the gradient over a communicator of the group's device, wherever the gradient is kept.
  void sum_over(comm::Communicator& over);
  /// Adds that of another group of the same parameters.
  void add(const GradientBucket& other);
  /// Forgets the gradient.
  void end_step(StepEnd how);
  void add_memory(MemoryKinds& kinds) const;

 private:
  struct Reduction {  ///< over fsdp
    bool under_way = false;
    at::Tensor in, out;
    /// its end, where the sum over replicas was issued behind it
    std::optional<kernels::SideStream::Mark> beside;
  };
  bool adds_in_place() const;
  bool put_leaves(const at::Tensor& flat, bool first);
  void add_leaf(ShardedParam& param, const at::Tensor& flat, bool first);
  void land_reduced();
  void start_sum(comm::Communicator& over);

  ShardGroup& group_;
  comm::Communicator& replicate_;
  bool tree_;
  at::Tensor flat_;  ///< [chunk_elements] in Precision::gradient()
  PartialSums partials_;
  Reduction reduction_;
  at::Tensor sum_;  ///< flat_, or a copy of it, while it is summed over other ranks
  GradientLanding landing_;
  comm::Request request_;         ///< of the reduction or the sum in progress
  bool reduced_ = false;          ///< this step's gradient holds something
  bool replicas_summed_ = false;  ///< or their sum is in progress
  int users_ = 0, pending_ = 0;   ///< calls of add() that are still to come
};

}  // namespace tessera::parallel
