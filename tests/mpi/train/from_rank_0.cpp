// SPDX-License-Identifier: Apache-2.0
#include "mpi/train/from_rank_0.hpp"

#include <chrono>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <thread>

namespace tessera::test {

std::vector<double> from_rank_0(comm::World& world,
                                const std::function<std::vector<double>()>& compute) {
  std::vector<double> values;
  std::exception_ptr failure;
  if (world.rank() == 0) try {
      values = compute();
    } catch (...) {
      failure = std::current_exception();
    }
  std::int64_t count = failure ? -1 : static_cast<std::int64_t>(values.size());
  comm::Request arrived = world.control().broadcast({&count, 1, DType::i64}, 0);
  while (!arrived.test()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  arrived.wait();
  if (failure) std::rethrow_exception(failure);
  if (count < 0) throw std::runtime_error("rank 0 could not compute the reference");
  values.resize(static_cast<std::size_t>(count));
  world.control().broadcast({values.data(), count, DType::f64}, 0).wait();
  return values;
}

}  // namespace tessera::test
