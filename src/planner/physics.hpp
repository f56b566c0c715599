// SPDX-License-Identifier: Apache-2.0
// Constants that all machines and stacks share, each with its reason. None is fitted to a row.
#pragma once

namespace tessera::planner::physics {

/// Large copies to the data sheet's bandwidth (STREAM on GPUs; Calculon's A100 file has the same).
inline constexpr double kHbmEfficiency = 0.90;
/// NCCL's bus bandwidth on 8 x H100: 360 to 370 of 450 GB/s (nccl-tests).
inline constexpr double kNvlinkEfficiency = 0.80;
/// InfiniBand NDR 400: 45 to 48 of 50 GB/s (nccl-tests, perftest).
inline constexpr double kNicEfficiency = 0.90;
/// The best measured product to the data sheet's peak, where the measurement says more.
inline constexpr double kMostOfPeak = 0.9;
/// Launch gap, prologue and the last tile's epilogue of a large kernel.
inline constexpr double kKernelSeconds = 4e-6;
/// A step of a ring within a domain, and between nodes (NCCL's LL128 and simple protocols).
inline constexpr double kNvlinkHopSeconds = 1.5e-6;
inline constexpr double kNicHopSeconds = 8e-6;
/// A message between GPUs of one domain.
inline constexpr double kMessageSeconds = 3e-6;
/// Causal attention reaches s / (s + this) of its rate (FlashAttention-2 and 3, figures 5 and 6).
inline constexpr double kAttentionRamp = 600;
/// Of a multiprocessor: 3.9 TFLOP/s of special functions on an H100's 132 (FlashAttention-3,
/// https://arxiv.org/abs/2407.08608, section 3.2). They do not grow with the tensor cores.
inline constexpr double kExponentialsPerSecond = 3.9e12 / 132;
/// Rate of products with a scale for 32 elements to that with one for a tensor: 6.81 and 7.16 ms of
/// the same products on a B300 (Transformer Engine, docs/examples/gemm_profiling).
inline constexpr double kBlockScaledRate = 0.951;
/// Relative spread of a microbatch's time between ranks: clocks and hosts.
inline constexpr double kJitter = 0.02;
/// Multiprocessors that an overlapped exchange of tokens takes (DeepEP 20 to 24 of 132).
inline constexpr double kExchangeShare = 0.2;
/// From a failure to a started job: failures are found and diagnosed in ten minutes
/// (MegaScale, https://arxiv.org/abs/2402.15627, section 6.3).
inline constexpr double kDetectionSeconds = 600;
/// Allocated beside the allocator's peak: CUDA context, NCCL's buffers, libraries' workspaces.
inline constexpr double kRuntimeBytes = 2.0 * 1024 * 1024 * 1024;
/// The same of a rank on a host: LibTorch and MPI (a rehearsal's resident bytes, less its tensors).
inline constexpr double kHostRuntimeBytes = 160.0 * 1024 * 1024;

}  // namespace tessera::planner::physics
