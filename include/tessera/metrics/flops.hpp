// SPDX-License-Identifier: Apache-2.0
// What a token costs, what the device could do, and the ratio of the two (model FLOP utilisation,
// PaLM, arXiv:2204.02311).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tessera/base/dtype.hpp"

namespace tessera::metrics {

/// The numbers on which the cost of a token depends.
struct ModelSize {
  std::int64_t parameters = 0;  ///< N: every parameter, a tied table once (of a mixture of experts:
                                ///< those active for one token)
  std::int64_t embedding_parameters = 0;  ///< N_embedding: those only looked up, never multiplied;
                                          ///< 0 where the table is tied to the head
  std::int64_t layers = 0;                ///< L
  std::int64_t heads = 0;                 ///< H: query heads
  std::int64_t head_dims = 0;   ///< query-key plus value dimension of a head: 2 head_dim for Llama
  std::int64_t seq_tokens = 0;  ///< length of a sequence
};

/// Floating point operations of one token, forward and backward, a multiply-add counted as two;
/// recompute is not counted.
struct FlopsPerToken {
  double full = 0;    ///< 6 (N - N_embedding) + 6 L H head_dims seq: attention not halved, as
                      ///< TorchTitan counts; MFU uses this
  double causal = 0;  ///< the attention term halved: a causal mask leaves half of the products
};
FlopsPerToken flops_per_token(const ModelSize& size);

/// The fastest that one device (a GPU, or the part of a host that one rank has) could go, in
/// FLOP/s, and where the figure comes from.
struct Peak {
  double flops = 0;  ///< 0: unknown, and so is the MFU
  std::string source;
  double clock_hz = 0;  ///< of a core; 0: of a GPU, or unknown
};

/// Dense peak from the vendor's data sheet for a device named as CUDA or HIP name it ("NVIDIA H100
/// 80GB HBM3", "AMD Instinct MI300X"). bf16 and f16 share a figure; f32 is without TF32. Empty for
/// a device or type that the table lacks.
std::optional<Peak> device_peak(std::string_view device_name, DType dtype);

/// Estimate for the cores that this rank has of a node with `ranks_on_node` ranks: the cores in its
/// affinity mask, and no more than its equal share of the node; cores x clock x FLOP per cycle of
/// the widest vector unit. `ranks_on_node`
/// >= 1.
Peak host_peak(DType dtype, int ranks_on_node);

/// The same from the text of /proc/cpuinfo, for `cores` physical cores at `clock_hz` (0: the clock
/// that the text states).
Peak host_peak_of(std::string_view cpuinfo, DType dtype, double cores, double clock_hz = 0);

/// Physical cores in the text of /proc/cpuinfo (two threads of a core count once); at least 1.
int physical_cores(std::string_view cpuinfo);

/// Model FLOP utilisation as a fraction: tokens/s of one device x FLOP of a token / peak. NaN when
/// the peak is unknown.
double mfu(double tokens_per_second_per_device, double flops_per_token, const Peak& peak);

}  // namespace tessera::metrics
