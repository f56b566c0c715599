// SPDX-License-Identifier: Apache-2.0
// The parts of a block: products, memory-bound kernels and collectives, added up in a CellTime.
#pragma once

#include <filesystem>
#include <vector>

#include "cell_time.hpp"

namespace tessera::planner {

/// Collects the time of one cell. Keeps references to what it is given.
class CellParts {
 public:
  CellParts(const Workload& work, const Machine& machine, const Stack& stack, Recompute recompute)
      : work(work), machine(machine), stack(stack), recompute(recompute) {}

  const Workload& work;
  const Machine& machine;
  const Stack& stack;
  const Recompute recompute;
  CellTime time{};
  std::vector<Kernel>* kernels = nullptr;  ///< where those of the forward are noted

  /// How a product is done.
  struct Linear {
    bool again = false;     ///< recomputed
    bool quantised = true;  ///< its input is cast here, not by an earlier product
    double experts = 1;     ///< products of one grouped kernel
    std::optional<Format> format = {};
  };

  /// Of a group of tensor-parallel ranks, and of this rank between products.
  double tokens() const { return work.local_tokens(); }
  double rows() const { return work.sequence_parallel ? tokens() / work.tp : tokens(); }
  /// Of matrix products and attention, to what the machine can do at best.
  double product_rate() const { return 1 - machine.shortfall * (1 - stack.gemm); }
  bool full() const { return recompute == Recompute::full; }
  bool stops_early() const {
    if (!stack.early_stop || stack.no_early_stop_on.empty()) return stack.early_stop;
    return stack.no_early_stop_on != std::filesystem::path(machine.name).stem();
  }
  /// Is attention recomputed, or its elementwise operations?
  bool attention_again() const { return full() || recompute == Recompute::save_qkv; }
  bool half_products_again() const {
    return recompute == Recompute::every_second_mm && stack.op_remakes_products;
  }
  bool elementwise_again() const {
    return attention_again() || recompute == Recompute::every_second_mm;
  }

  /// y [rows, out] = x [rows, in] w: forward, and both gradients.
  void linear(double rows, double out, double in) { linear(rows, out, in, Linear{}); }
  void linear(double rows, double out, double in, const Linear& how);
  /// Bytes of ideally fused kernels. `factor`: of the stack; 0: Stack::traffic.
  void stream(double forward_bytes, double backward_bytes, bool again, double factor = 0);
  /// Gathers tokens in front of a pair of products and adds up behind it, in backward the other way
  /// round.
  void tensor_parallel(bool again);
  /// Of a microbatch, where each rank computes the whole loss.
  void gather_logits();

  void attention();
  void feed_forward(double hidden);
  void mixture();

 private:
  void note(const std::string& name, double flops, double bytes, double seconds) const;
  void quantise(double rows, double out, double in, const Linear& how);
  void projections();
  void latent_projections();
  void core(double head_dim, double kv_bytes);
  void share_keys(double forward, double backward, double kv_bytes);
  void shared_experts();
  void experts(double routed, double local);
  void exchange(double routed);
};

}  // namespace tessera::planner
