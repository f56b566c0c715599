// SPDX-License-Identifier: Apache-2.0
// What `tessera bench` measures. All ranks work at once; figures are those of the slowest one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tessera/comm/world.hpp"

namespace tessera::train {
class BenchDevice;
}

namespace tessera::app {

struct BenchRow {
  std::string name;  ///< "float32 2048 x 512 x 512", "all_reduce 1024 B"
  double seconds = 0;
  double rate = 0;   ///< FLOP/s; bytes/s of each rank's link, or to a disk of all ranks
  double limit = 0;  ///< the machine's, of `rate`; 0: unknown
};

using Works = std::vector<std::function<void()>>;

/// Collective: the median times of works that take turns, on this rank; at least 5 turns, and as
/// many as `budget` seconds have. What disturbs the machine meets all works alike.
std::vector<double> medians_of_turns(comm::Communicator& all, const Works& works, double budget);

/// Collective: the median time of one call of `work` on the slowest rank, over at least 5 calls,
/// and as many as `budget` seconds have.
double median_seconds(comm::Communicator& all, const std::function<void()>& work,
                      double budget = 0.2);
/// The same of what `work` gives a device to do. A GPU gets up to twenty calls, of 20 ms in all,
/// before the host waits for their end, so that it does not wait for the host, as in training.
double median_seconds(const train::BenchDevice& on, const std::function<void()>& work);

struct GemmShape {
  std::int64_t m = 0, k = 0, n = 0;
};
/// Products [m, k] x [k, n] in float32 or bfloat16. The limit is BenchDevice::peak().
std::vector<BenchRow> bench_gemm(const train::BenchDevice& on,
                                 const std::vector<std::string>& types,
                                 const std::vector<GemmShape>& shapes);

/// Fused kernels on float32 [rows, columns]. The rate is the bytes that a kernel must read and
/// write; the limit is that of a copy of such a tensor.
std::vector<BenchRow> bench_kernels(const train::BenchDevice& on, std::int64_t rows,
                                    std::int64_t columns);

/// Collective calls and a ring of transfers between all ranks, over NCCL between GPUs and over MPI
/// on the host. `registered`: the collectives with buffers that NCCL knows, too. The rate is the
/// bus bandwidth of nccl-tests. The limit is a copy of as many bytes in memory, where all ranks
/// are on the cores of one node; between GPUs it is unknown.
std::vector<BenchRow> bench_comm(const train::BenchDevice& on,
                                 const std::vector<std::int64_t>& sizes, bool registered);

/// Saves and loads of a checkpoint of `bytes` in all, in a new folder tessera-bench in `folder`
/// that is removed. The limits are plain writes, each flushed, and plain reads of one file a rank;
/// files may come from the system's cache. Throws Error(usage) where the folder exists.
std::vector<BenchRow> bench_checkpoint(comm::World& world, const std::filesystem::path& folder,
                                       std::int64_t bytes);

}  // namespace tessera::app
