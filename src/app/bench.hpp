// SPDX-License-Identifier: Apache-2.0
// What `tessera bench` measures. All ranks work at once; figures are those of the slowest one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tessera/comm/world.hpp"

namespace tessera::app {

struct BenchRow {
  std::string name;  ///< "float32 2048 x 512 x 512", "all_reduce 1048576"
  double seconds = 0;
  double rate = 0;   ///< FLOP/s, or bytes/s of each rank's link
  double limit = 0;  ///< the machine's, of `rate`; 0: unknown
};

/// Collective: the median time of one call of `work` on the slowest rank, over at least 5 calls.
double median_seconds(comm::Communicator& all, const std::function<void()>& work);

struct GemmShape {
  std::int64_t m = 0, k = 0, n = 0;
};
/// Products [m, k] x [k, n] on the host, in float32 or bfloat16. The limit is that of
/// metrics::host_peak.
std::vector<BenchRow> bench_gemm(comm::World& world, const std::vector<std::string>& types,
                                 const std::vector<GemmShape>& shapes);

/// Collective calls and a ring of transfers between all ranks, over MPI on the host. The rate is
/// the bus bandwidth of nccl-tests. The limit is a copy of as many bytes in memory, where all ranks
/// are on one node.
std::vector<BenchRow> bench_comm(comm::World& world, const std::vector<std::int64_t>& sizes);

}  // namespace tessera::app
