// SPDX-License-Identifier: Apache-2.0
// lost_rank WHERE: the last rank is killed while the others communicate; these say which one, and
// the job ends with 7.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "tessera/base/error.hpp"
#include "tessera/comm/world.hpp"

namespace {

using Clock = std::chrono::steady_clock;

/// Adds over all ranks, or passes on to the next, until that fails.
[[noreturn]] void communicate(tessera::comm::World& world, tessera::comm::Communicator& ring,
                              bool adds) {
  std::int64_t value = 1, other = 0;
  const int next = (world.rank() + 1) % world.size(),
            previous = (world.rank() + world.size() - 1) % world.size();
  for (int round = 0;; ++round) {
    if (round == 100 && world.rank() == world.size() - 1) std::raise(SIGKILL);
    value = 1;
    if (adds) {
      ring.all_reduce({&value, 1, tessera::DType::i64}).wait();
      continue;
    }
    ring.group_start();
    ring.send({&value, 1, tessera::DType::i64}, next);
    ring.recv({&other, 1, tessera::DType::i64}, previous);
    ring.group_end().wait();
  }
}

}  // namespace

int main(int argc, char** argv) {
  tessera::comm::World world(&argc, &argv);
  const bool strict = argc > 2 && std::strcmp(argv[2], "strict") == 0;
  const auto ring =
      world.make(strict ? tessera::comm::Backend::strict : tessera::comm::Backend::mpi, "ring");
  const auto began = Clock::now();
  try {
    communicate(world, *ring, argc > 1 && std::strcmp(argv[1], "reduce") == 0);
  } catch (const tessera::Error& error) {
    const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
    std::cerr << fmt::format("rank {} after {} s: {}\n", world.rank(), seconds,
                             error.what());  // in one piece
    world.abort(static_cast<int>(error.code()));
  }
}
