// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "bench.hpp"
#include "tessera/kernels/tensor.hpp"
#include "tessera/metrics/meter.hpp"
#include "tessera/train/bench_device.hpp"

namespace tessera::app {
namespace {

using comm::Communicator;

/// Two buffers of `count` float32 on the ranks' devices; of each, a rank has an equal part.
struct Buffers {
  std::shared_ptr<void> first_memory, second_memory;
  std::int64_t count, part;
  comm::Memory where;
  comm::Buffer whole(const std::shared_ptr<void>& memory) const {
    return {memory.get(), count, DType::f32, where};
  }
  /// This rank's part, in which gathers and reductions are in place, as in training.
  comm::Buffer own(const Communicator& c) const {
    return {static_cast<float*>(first_memory.get()) + c.rank() * part, part, DType::f32, where};
  }
  comm::Buffer first() const { return whole(first_memory); }
  comm::Buffer second() const { return whole(second_memory); }
};

struct Call {
  const char* name;
  void (*run)(Communicator&, const Buffers&);
  double (*factor)(double ranks);  ///< of the bytes that pass each rank's link
  bool can_register;
};

double of_others(double ranks) { return (ranks - 1) / ranks; }

constexpr std::array kCalls{
    Call{"all_reduce", [](Communicator& c, const Buffers& b) { c.all_reduce(b.first()).wait(); },
         [](double ranks) { return 2 * of_others(ranks); }, true},
    Call{"all_gather",
         [](Communicator& c, const Buffers& b) { c.all_gather(b.own(c), b.first()).wait(); },
         &of_others, true},
    Call{"reduce_scatter",
         [](Communicator& c, const Buffers& b) { c.reduce_scatter(b.first(), b.own(c)).wait(); },
         &of_others, true},
    Call{"all_to_all",
         [](Communicator& c, const Buffers& b) { c.all_to_all(b.first(), b.second()).wait(); },
         &of_others, false},
    Call{"ring",
         [](Communicator& c, const Buffers& b) {
           c.group_start();
           c.send(b.first(), (c.rank() + 1) % c.size());
           c.recv(b.second(), (c.rank() + c.size() - 1) % c.size());
           c.group_end().wait();
         },
         [](double) { return 1.0; }, false}};

/// Zeros.
std::shared_ptr<void> memory_on(at::Device device, std::int64_t count) {
  const at::Tensor tensor = at::zeros({count}, at::TensorOptions(at::kFloat).device(device));
  return {tensor.data_ptr(), [tensor](void*) {}};
}

/// What those of NCCL hold does not matter; it is cleared once, so that sums stay finite.
std::shared_ptr<void> registered_in(Communicator& all, at::Device device, std::int64_t count) {
  const auto bytes = static_cast<std::size_t>(count) * sizeof(float);
  std::shared_ptr<void> memory = all.registered_memory(bytes);
  at::for_blob(memory.get(), {count})
      .options(at::TensorOptions(at::kFloat).device(device))
      .target_device(device)
      .make_tensor()
      .zero_();
  return memory;
}

/// Bytes/s that one rank copies while all others do.
double copy_rate(comm::World& world, const Buffers& buffers) {
  const std::size_t bytes = buffers.first().bytes();
  const auto copy = [&] {
    std::memcpy(buffers.second_memory.get(), buffers.first_memory.get(), bytes);
  };
  return static_cast<double>(bytes) / median_seconds(world.control(), copy);
}

BenchRow measured_call(const train::BenchDevice& on, Communicator& all, const Call& call,
                       std::int64_t bytes, bool registered) {
  Buffers buffers;
  buffers.part = std::max<std::int64_t>(1, bytes / 4 / all.size());
  buffers.count = buffers.part * all.size();
  buffers.where = on.is_gpu() ? comm::Memory::device : comm::Memory::host;
  const auto memory = [&] {
    return registered ? registered_in(all, on.device(), buffers.count)
                      : memory_on(on.device(), buffers.count);
  };
  buffers.first_memory = memory();
  buffers.second_memory = memory();
  const bool one_host = !on.is_gpu() && on.world().local_size() == all.size();
  const double limit = one_host ? copy_rate(on.world(), buffers) : 0;
  const double seconds = median_seconds(on, [&] { call.run(all, buffers); });
  return {fmt::format("{} {} B{}", call.name, 4 * buffers.count, registered ? " registered" : ""),
          seconds, 4 * static_cast<double>(buffers.count) * call.factor(all.size()) / seconds,
          limit};
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
  constexpr int kCallsTogether = 20;
  const auto together = [&] {
    for (int i = 0; i < kCallsTogether; ++i) work();
    train::synchronize(on.device());
  };
  return median_seconds(on.world().control(), together) / kCallsTogether;
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
