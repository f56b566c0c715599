// SPDX-License-Identifier: Apache-2.0
// A software stack: what a program does (facts, from its source), and how well it does it (at most
// six constants, fitted to published runs), from share/tessera/stacks/NAME.toml.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/planner/machine.hpp"

namespace tessera::planner {

/// Does a pipeline's message run beside the computation?
enum class MessageOverlap : std::uint8_t { never, chunks, always };

struct Launches {
  double forward = 0, backward = 0;  ///< kernels that the host starts
};

/// Bytes are per element unless said otherwise.
struct Stack {
  std::string name;

  // facts
  AttentionKernel attention = AttentionKernel::fused;
  bool tp_overlap = false;  ///< tensor-parallel collectives run beside matrix products
  MessageOverlap p2p_overlap = MessageOverlap::chunks;  ///< chunks: if a rank has several stages
  bool distributed_optimizer = false;  ///< weights stay whole on each data-parallel rank; else FSDP
  double loss_traffic_bytes = 14;      ///< moved by the loss for each logit, forward and backward
  double loss_bytes = 14;              ///< held at the peak for each logit
  double loss_copies = 0;     ///< of the logits in the type of computation, in place of loss_bytes
  double gradient_bytes = 4;  ///< of an accumulated gradient
  double reduce_bytes = 4;    ///< of a gradient in a collective
  double gather_bytes = 2;    ///< of a weight in a collective
  double optimizer_traffic_bytes = 30;  ///< moved by a step of AdamW for each parameter in float32
  double expert_bias_bytes = 0;  ///< moved to add biases to outputs of experts, in both passes
  double sum_traffic_bytes = 0;  ///< moved to add a microbatch's gradient of a parameter, where
                                 ///< ranks add whole ones; the first takes 4 less
  double optimizer_bytes = 12;   ///< distributed optimizer: float32 weight and two moments
  double working_factor = 1;     ///< temporaries of a block's backward; eager programs hold more
  double fsdp_copies = 0;        ///< passes over weights and gradients beside their collectives
  bool recast_weights = false;   ///< weights are quantised again for each microbatch
  bool early_stop = false;       ///< recomputation stops before the last product
  /// a machine on which its published runs are of a release that does not
  std::string no_early_stop_on;
  bool loss_beside_blocks = true;     ///< logits are still held when the last block goes backward
  bool op_remakes_products = true;    ///< selective "op" computes every second product again
  bool keeps_gathered = false;        ///< tokens that ranks of tp gathered for a product are kept
  bool keeps_expert_outputs = false;  ///< experts' outputs are kept, for the gradients of scores
  double reductions_behind = 0;   ///< FSDP: units whose gradients are being reduced; 0: not counted
  bool frees_gradients = false;   ///< whole gradients of a chunk: after its last backward
  bool fused_loss = false;        ///< the loss is computed in chunks of tokens where a job says so
  bool offload = false;           ///< activations go to the host where a job says so
  bool bfloat16_state = false;    ///< weights and moments in bfloat16 lose no small updates
  bool graphs = false;            ///< steps are CUDA graphs where a job says so
  bool defer_head_wgrad = false;  ///< the output's weight gradients run in the pipeline's drain
  Launches kernels{30, 50};       ///< of a block
  Launches mixture_kernels{150, 250};  ///< of a block with a mixture, and for each expert here
  Launches expert_kernels{20, 30};

  // constants
  double gemm = 0.82;          ///< rate of matrix products to the machine's ceiling
  double attention_rate = 1;   ///< the same of attention, on top of `gemm`
  double traffic = 1.5;        ///< bytes of memory-bound kernels to those of ideally fused ones
  double mixture_traffic = 0;  ///< the same around experts; 0: as `traffic`
  double imbalance = 0.15;     ///< more rows on the busiest rank, where routing is not balanced
  double tp_exposed = 0.3;     ///< share of tensor-parallel collectives that is not hidden
  double overlap_tax = 0.1;    ///< a hidden collective slows the computation by this part of it
  double host_us = 10;         ///< to launch a kernel
  double dispatch = 0.6;       ///< rate of an exchange of tokens to that of its links
  double step_ms = 2;          ///< beside microbatches and optimizer
};

/// The constants that may be fitted, by the names of their keys.
struct Constant {
  const char* name;
  double Stack::*value;
};
const std::vector<Constant>& constants();

/// The names of the files that there are, sorted.
std::vector<std::string> stack_names();

/// The name of Tessera's on such a machine.
std::string stack_of(const Machine& machine);

/// Reads share/tessera/stacks/`name`.toml, or the file itself if `name` ends in ".toml"; what it
/// does not say, the stack that it `inherits` does. Throws Error(usage) that lists the stacks for a
/// name that is not known, and with file and line for a key that a stack does not have.
Stack load_stack(const std::string& name);

}  // namespace tessera::planner
