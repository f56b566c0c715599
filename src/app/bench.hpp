// SPDX-License-Identifier: Apache-2.0
// What `tessera bench` measures. All ranks work at once; figures are those of the slowest one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tessera/comm/world.hpp"

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

struct GemmShape {
  std::int64_t m = 0, k = 0, n = 0;
};
/// Products [m, k] x [k, n] on the host, in float32 or bfloat16. The limit is that of
/// metrics::host_peak.
std::vector<BenchRow> bench_gemm(comm::World& world, const std::vector<std::string>& types,
                                 const std::vector<GemmShape>& shapes);

/// Fused kernels on float32 [rows, columns] on the host. The rate is the bytes that a kernel must
/// read and write; the limit is that of a copy of such a tensor.
std::vector<BenchRow> bench_kernels(comm::World& world, std::int64_t rows, std::int64_t columns);

/// Collective calls and a ring of transfers between all ranks, over MPI on the host. The rate is
/// the bus bandwidth of nccl-tests. The limit is a copy of as many bytes in memory, where all ranks
/// are on one node.
std::vector<BenchRow> bench_comm(comm::World& world, const std::vector<std::int64_t>& sizes);

/// Saves and loads of a checkpoint of `bytes` in all, in a new folder tessera-bench in `folder`
/// that is removed. The limits are plain writes, each flushed, and plain reads of one file a rank;
/// files may come from the system's cache. Throws Error(usage) where the folder exists.
std::vector<BenchRow> bench_checkpoint(comm::World& world, const std::filesystem::path& folder,
                                       std::int64_t bytes);

}  // namespace tessera::app
