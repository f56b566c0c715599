// SPDX-License-Identifier: Apache-2.0
// A node without GPUs: what its cores do, as `tessera plan calibrate` measures it, or as the
// processor describes itself.
#pragma once

#include <string>
#include <vector>

namespace tessera::planner {

/// Rates are those of one core while all cores compute, in FLOP/s and bytes/s.
struct Host {
  std::string processor;
  int cores = 1;  ///< of the node
  double memory_bytes = 0;
  double copy_bytes_per_second = 0;  ///< read and written by kernels that memory bounds
  double thread_rate = 1;     ///< of a rank with several threads, to as many ranks of one thread
  double kernel_seconds = 0;  ///< of an operation, beside its work
  double fork_seconds = 0;    ///< more of it, where the rank has several threads

  double f32_peak = 0, bf16_peak = 0;  ///< clock x FLOP of a cycle
  /// Products of matrices: FLOP/s, and bytes/s of operands and results. Both take their time, one
  /// after the other, because operands are packed first.
  double f32_flops_per_second = 0, bf16_flops_per_second = 0;
  double f32_operand_bytes_per_second = 0, bf16_operand_bytes_per_second = 0;
  /// Causal attention: FLOP/s, and visible scores/s, one after the other.
  double attention_forward = 0, attention_backward = 0;
  double scores_forward = 0, scores_backward = 0;

  double rank_bytes_per_second = 0;  ///< of a rank in a collective
  double call_seconds = 0;           ///< of a message, or a round of a collective, beside its bytes
  double switch_seconds = 0;         ///< more of a call, where ranks take turns on a core
  double checkpoint_bytes_per_second = 0;  ///< written and flushed by the node; 0: not known
};

/// A host as one of its ranks has it.
struct HostRank {
  Host node;
  int threads = 1;
  double speed = 1;  ///< to that of a core
  double crowd = 1;  ///< ranks that take turns on a core
};

/// This node as its processor describes itself: its name, cores, clock and vector width, and what
/// is usual for such cores. Measures the clock and copies of all cores, in less than 0.1 s.
Host this_host();

/// A machine's file. `notes`: lines that become comments at its head.
std::string machine_file(const Host& host, const std::vector<std::string>& notes);

}  // namespace tessera::planner
