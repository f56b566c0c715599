// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "bench.hpp"
#include "tessera/metrics/meter.hpp"

namespace tessera::app {
namespace {

using comm::Communicator;

/// Both buffers have `count` float32, of which each rank has an equal part.
struct Buffers {
  std::vector<float> first, second;
  std::int64_t count, part;
  comm::Buffer whole(std::vector<float>& values) const {
    return {values.data(), count, DType::f32};
  }
  comm::Buffer own(std::vector<float>& values) const { return {values.data(), part, DType::f32}; }
};

struct Call {
  const char* name;
  void (*run)(Communicator&, Buffers&);
  double (*factor)(double ranks);  ///< of the bytes that pass each rank's link
};

double of_others(double ranks) { return (ranks - 1) / ranks; }

constexpr std::array kCalls{
    Call{"all_reduce", [](Communicator& c, Buffers& b) { c.all_reduce(b.whole(b.first)).wait(); },
         [](double ranks) { return 2 * of_others(ranks); }},
    Call{
        "all_gather",
        [](Communicator& c, Buffers& b) { c.all_gather(b.own(b.first), b.whole(b.second)).wait(); },
        &of_others},
    Call{"reduce_scatter",
         [](Communicator& c, Buffers& b) {
           c.reduce_scatter(b.whole(b.first), b.own(b.second)).wait();
         },
         &of_others},
    Call{"all_to_all",
         [](Communicator& c, Buffers& b) {
           c.all_to_all(b.whole(b.first), b.whole(b.second)).wait();
         },
         &of_others},
    Call{"ring",
         [](Communicator& c, Buffers& b) {
           c.group_start();
           c.send(b.whole(b.first), (c.rank() + 1) % c.size());
           c.recv(b.whole(b.second), (c.rank() + c.size() - 1) % c.size());
           c.group_end().wait();
         },
         [](double) { return 1.0; }}};

/// Bytes/s that one rank copies while all others do.
double copy_rate(comm::World& world, Buffers& buffers) {
  const std::size_t bytes = buffers.first.size() * sizeof(float);
  const auto copy = [&] { std::memcpy(buffers.second.data(), buffers.first.data(), bytes); };
  return static_cast<double>(bytes) / median_seconds(world.control(), copy);
}

}  // namespace

std::vector<double> medians_of_turns(Communicator& all, const Works& works, double budget) {
  std::vector<metrics::Window> windows;
  const auto turn = [&] {
    double together = 0;
    for (std::size_t i = 0; i < works.size(); ++i) {
      const double begin = metrics::monotonic_seconds();
      works[i]();
      const double seconds = metrics::monotonic_seconds() - begin;
      if (!windows.empty()) windows[i].add(seconds);
      together += seconds;
    }
    return together;
  };
  turn();
  all.barrier();
  const double once = comm::all_reduce_scalar(all, turn(), comm::Op::max);
  const auto turns = static_cast<std::size_t>(std::clamp(budget / once, 5.0, 2000.0));
  windows.assign(works.size(), metrics::Window(turns));
  all.barrier();
  for (std::size_t i = 0; i < turns; ++i) turn();
  std::vector<double> medians;
  for (const metrics::Window& window : windows) medians.push_back(window.median());
  return medians;
}

double median_seconds(Communicator& all, const std::function<void()>& work, double budget) {
  return comm::all_reduce_scalar(all, medians_of_turns(all, {work}, budget).front(), comm::Op::max);
}

std::vector<BenchRow> bench_comm(comm::World& world, const std::vector<std::int64_t>& sizes) {
  const auto all = world.make(comm::Backend::mpi, "bench");
  std::vector<BenchRow> rows;
  for (const Call& call : kCalls)
    for (const std::int64_t bytes : sizes) {
      Buffers buffers;
      buffers.part = std::max<std::int64_t>(1, bytes / 4 / world.size());
      buffers.count = buffers.part * world.size();
      buffers.first.resize(static_cast<std::size_t>(buffers.count));
      buffers.second = buffers.first;
      const double limit = world.local_size() == world.size() ? copy_rate(world, buffers) : 0;
      const double seconds = median_seconds(world.control(), [&] { call.run(*all, buffers); });
      rows.push_back({fmt::format("{} {} B", call.name, 4 * buffers.count), seconds,
                      4 * static_cast<double>(buffers.count) * call.factor(world.size()) / seconds,
                      limit});
    }
  return rows;
}

}  // namespace tessera::app
