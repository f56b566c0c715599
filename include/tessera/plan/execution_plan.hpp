// SPDX-License-Identifier: Apache-2.0
// What a job's tensors and communicators run on, and in which arithmetic.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "tessera/base/dtype.hpp"

namespace tessera::plan {

enum class DeviceChoice : std::uint8_t {
  automatic,  ///< a GPU in a build with CUDA, else the host
  cuda,
  cpu,
};

struct DevicePlan {
  DeviceChoice choice = DeviceChoice::automatic;
  bool share = false;            ///< ranks of a node may have the same GPU
  bool graphs = false;           ///< steps are CUDA graphs where they can be
  std::string kernels = "auto";  ///< as kernels::choose_host_kernels() takes it
};

enum class BackendChoice : std::uint8_t {
  automatic,  ///< NCCL between GPUs, else MPI
  mpi,
  strict,
  nccl,
};

struct CommPlan {
  BackendChoice backend = BackendChoice::automatic;
  std::int64_t init_timeout_seconds = 300, train_timeout_seconds = 100, save_timeout_seconds = 1800;
  bool check_collectives = false;
  std::int64_t traced_calls = 0;  ///< of each rank, written by a job that hangs
  std::filesystem::path traces_folder;
  std::string traces_prefix;

  bool wants_nccl() const {
    return backend == BackendChoice::automatic || backend == BackendChoice::nccl;
  }
};

/// Types of a run: masters; forward and backward; what gradients are exchanged in.
struct PrecisionPlan {
  DType master = DType::f32, compute = DType::bf16, reduce = DType::f32;

  /// Of gradients added up over microbatches: sums in bf16 would lose what masters in bf16 keep.
  DType gradient() const { return master == DType::bf16 ? reduce : master; }
};

struct ArithmeticPlan {
  bool allow_tf32 = false, allow_bf16_reduced_precision_reduction = true;  ///< on GPUs
  bool deterministic = false, deterministic_warn_only = false;
};

}  // namespace tessera::plan
