// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "bench.hpp"
#include "tessera/kernels/tensor.hpp"
#include "tessera/metrics/meter.hpp"
#include "tessera/parallel/registered_buffer.hpp"
#include "tessera/parallel/tensor_buffer.hpp"
#include "tessera/train/bench_device.hpp"

namespace tessera::app {
namespace {

using comm::Communicator;

constexpr double kSecondsTogether = 0.02;

/// Two of equal size in float32. Gathers and reductions are in place in this rank's part of the
/// first, as in training.
struct Buffers {
  comm::Buffer first, second, own;
};

struct Call {
  const char* name;
  void (*run)(Communicator&, const Buffers&);
  double (*factor)(double ranks);  ///< of the bytes that pass each rank's link
  bool can_register;
};

double of_others(double ranks) { return (ranks - 1) / ranks; }

constexpr std::array kCalls{
    Call{"all_reduce", [](Communicator& c, const Buffers& b) { c.all_reduce(b.first).wait(); },
         [](double ranks) { return 2 * of_others(ranks); }, true},
    Call{"all_gather",
         [](Communicator& c, const Buffers& b) { c.all_gather(b.own, b.first).wait(); }, &of_others,
         true},
    Call{"reduce_scatter",
         [](Communicator& c, const Buffers& b) { c.reduce_scatter(b.first, b.own).wait(); },
         &of_others, true},
    Call{"all_to_all",
         [](Communicator& c, const Buffers& b) { c.all_to_all(b.first, b.second).wait(); },
         &of_others, false},
    Call{"ring",
         [](Communicator& c, const Buffers& b) {
           c.group_start();
           c.send(b.first, (c.rank() + 1) % c.size());
           c.recv(b.second, (c.rank() + c.size() - 1) % c.size());
           c.group_end().wait();
         },
         [](double) { return 1.0; }, false}};

/// [count] zeros, so that sums stay finite; registered with `all` where that is wanted.
at::Tensor zeros_on(const train::BenchDevice& on, Communicator& all, std::int64_t count,
                    bool registered) {
  const auto options = at::TensorOptions(at::kFloat).device(on.device());
  if (!registered) return at::zeros({count}, options);
  const auto bytes = count * static_cast<std::int64_t>(sizeof(float));
  return parallel::registered_buffer(all, bytes, on.device()).view(at::kFloat).zero_();
}

/// Bytes/s that one rank copies while all others do.
double copy_rate(comm::World& world, const Buffers& buffers) {
  const std::size_t bytes = buffers.first.bytes();
  const auto copy = [&] { std::memcpy(buffers.second.data, buffers.first.data, bytes); };
  return static_cast<double>(bytes) / median_seconds(world.control(), copy);
}

BenchRow measured_call(const train::BenchDevice& on, Communicator& all, const Call& call,
                       std::int64_t bytes, bool registered) {
  using parallel::buffer_of;
  const std::int64_t part = std::max<std::int64_t>(1, bytes / 4 / all.size());
  const std::int64_t count = part * all.size();
  const at::Tensor first = zeros_on(on, all, count, registered),
                   second = zeros_on(on, all, count, registered);
  const Buffers buffers{buffer_of(first), buffer_of(second),
                        buffer_of(first.narrow(0, all.rank() * part, part))};
  const bool one_host = !on.is_gpu() && on.world().local_size() == all.size();
  const double limit = one_host ? copy_rate(on.world(), buffers) : 0;
  const double seconds = median_seconds(on, [&] { call.run(all, buffers); });
  return {fmt::format("{} {} B{}", call.name, 4 * count, registered ? " registered" : ""), seconds,
          4 * static_cast<double>(count) * call.factor(all.size()) / seconds, limit};
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

double median_seconds(const train::BenchDevice& on, const std::function<void()>& work) {
  if (!on.is_gpu()) return median_seconds(on.world().control(), work);
  Communicator& all = on.world().control();
  int calls = 1;
  const auto together = [&] {
    for (int i = 0; i < calls; ++i) work();
    train::synchronize(on.device());
  };
  together();
  const double begin = metrics::monotonic_seconds();
  together();
  const double once =
      comm::all_reduce_scalar(all, metrics::monotonic_seconds() - begin, comm::Op::max);
  calls = static_cast<int>(std::clamp(kSecondsTogether / once, 1.0, 20.0));
  return median_seconds(all, together) / calls;
}

std::vector<BenchRow> bench_comm(const train::BenchDevice& on,
                                 const std::vector<std::int64_t>& sizes, bool registered) {
  const auto all = on.communicator("bench");
  std::vector<BenchRow> rows;
  for (const Call& call : kCalls)
    for (const bool of_registered : {false, true})
      for (const std::int64_t bytes : sizes)
        if (!of_registered || (registered && call.can_register))
          rows.push_back(measured_call(on, *all, call, bytes, of_registered));
  return rows;
}

}  // namespace tessera::app
