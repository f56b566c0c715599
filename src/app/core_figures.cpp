// SPDX-License-Identifier: Apache-2.0
// The speed of this node's cores in what a step is made of.
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <thread>

#include "bench.hpp"
#include "calibration.hpp"
#include "cold.hpp"
#include "tessera/kernels/adamw.hpp"
#include "tessera/kernels/attention_part.hpp"
#include "tessera/kernels/host_kernels.hpp"
#include "tessera/kernels/matrix_product.hpp"
#include "tessera/kernels/rms_norm.hpp"
#include "tessera/kernels/swiglu.hpp"
#include "tessera/metrics/meter.hpp"
#include "tessera/planner/machine.hpp"
#include "tessera/train/cores.hpp"
#include "tessera/train/setup.hpp"
#include "two_part_fit.hpp"

namespace tessera::app {
namespace {

using planner::Host;

/// Those of small and of middle-sized models: forward, and gradients of inputs and of weights.
constexpr std::array kProducts{GemmShape{512, 256, 256},   GemmShape{1024, 256, 768},
                               GemmShape{1024, 768, 256},  GemmShape{256, 1024, 768},
                               GemmShape{1024, 256, 2048}, GemmShape{1024, 512, 1536},
                               GemmShape{512, 2048, 512},  GemmShape{2048, 1024, 1024}};
/// Sequences, positions, heads and elements of a head.
constexpr std::array kAttentions{
    std::array<std::int64_t, 4>{4, 256, 8, 16}, std::array<std::int64_t, 4>{4, 256, 4, 64},
    std::array<std::int64_t, 4>{1, 1024, 4, 16}, std::array<std::int64_t, 4>{1, 1024, 2, 64}};
/// Of at least 1024 rows, as a rank with several threads has them.
constexpr std::array kThreadedProducts{kProducts[1], kProducts[2], kProducts[5], kProducts[7]};
/// Both types of products; an operation, copies, and two fills for the cost of a fork.
constexpr double kMeasurements =
    2 * kProducts.size() + 2 * kAttentions.size() + 2 * kThreadedProducts.size() + 4;

struct ProductTensors {
  at::Tensor a, b, out;

  ProductTensors(const GemmShape& s, at::ScalarType type)
      : a(at::ones({s.m, s.k}, at::TensorOptions(type))),
        b(at::ones({s.k, s.n}, at::TensorOptions(type))),
        out(at::zeros({s.m, s.n}, at::TensorOptions(type))) {}
  void multiply() { out = kernels::mm(a, b); }
  double bytes() const { return static_cast<double>(a.nbytes() + b.nbytes() + out.nbytes()); }
};

struct AttentionTensors {
  kernels::AttentionPart part;
  kernels::AttentionValue value;
  at::Tensor gradient;

  explicit AttentionTensors(const std::array<std::int64_t, 4>& shape) : gradient(values(shape)) {
    const double scale = 1 / std::sqrt(static_cast<double>(shape[3]));
    part = {values(shape), values(shape), values(shape), scale, true, {}};
    value = kernels::attention_part(part);
  }
  void backward() const { kernels::attention_part_backward(part, value, gradient); }
  static at::Tensor values(const std::array<std::int64_t, 4>& shape) {
    return at::randn(shape, at::TensorOptions(at::kFloat));
  }
};

struct CopiedTensors {
  at::Tensor from, to;

  explicit CopiedTensors(std::int64_t elements)
      : from(at::ones({elements}, at::TensorOptions(at::kFloat))), to(at::ones_like(from)) {}
  void copy() { to.copy_(from); }
};

double flops_of(const GemmShape& s) { return 2.0 * static_cast<double>(s.m * s.k * s.n); }

/// Seconds of one call on this rank, the median of calls for `budget` seconds.
double seconds_here(const std::function<void()>& work, double budget) {
  metrics::Window window(10'000);
  work();
  const double end = metrics::monotonic_seconds() + budget;
  while (window.size() < 5 || (metrics::monotonic_seconds() < end && window.size() < 10'000)) {
    const double begin = metrics::monotonic_seconds();
    work();
    window.add(metrics::monotonic_seconds() - begin);
  }
  return window.median();
}

/// Lets this process run on all cores on which its node's ranks may run.
void use_cores_of_all(comm::World& world) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const std::string& mask : comm::all_gather_strings(world.control(), train::allowed_cores()))
    for (std::size_t core = 0; core < 8 * mask.size(); ++core)
      if ((static_cast<unsigned char>(mask[core / 8]) >> core % 8 & 1) != 0) CPU_SET(core, &set);
  sched_setaffinity(0, sizeof set, &set);
}

/// What all ranks measure at once.
class CoreMeter {
 public:
  CoreMeter(comm::World& world, double budget) : world_(world), budget_(budget) {}

  double seconds(const std::function<void()>& work) const {
    return median_seconds(world_.control(), work, budget_);
  }

  TwoRates products(at::ScalarType type, double operation, const TwoRates& usual) const {
    std::vector<TimedWork> works;
    for (const GemmShape& s : kProducts)
      works.push_back({flops_of(s), ProductTensors(s, type).bytes(), 0});
    double round = 0;
    for (const TimedWork& work : works) round += work.second;
    std::vector<Cold<ProductTensors>> tensors;
    for (const GemmShape& s : kProducts)
      tensors.emplace_back(round, [&] { return ProductTensors(s, type); });
    Works calls;
    for (Cold<ProductTensors>& sets : tensors)
      calls.emplace_back([&sets] { sets.next().multiply(); });
    std::vector<double> seconds = of_each(calls);
    for (double& one : seconds) one = std::max(one - operation, one / 2);
    return fitted(works, seconds, usual);
  }

  void attention(Host& host) const {
    std::vector<TimedWork> forward, backward;
    double round = 0;
    for (const auto& [rows, seq, heads, dim] : kAttentions) {
      const double scores = static_cast<double>(rows * heads * seq * seq) / 2;
      const double flops = 4 * scores * static_cast<double>(dim);
      forward.push_back({flops, scores, 0});
      backward.push_back({planner::kAttentionBackward * flops, scores, 0});
      round += 5 * 4.0 * static_cast<double>(rows * seq * heads * dim);
    }
    std::vector<Cold<AttentionTensors>> tensors;
    for (const auto& shape : kAttentions)
      tensors.emplace_back(round, [&] { return AttentionTensors(shape); });
    Works there, back;
    for (Cold<AttentionTensors>& sets : tensors) {
      there.emplace_back([&sets] { kernels::attention_part(sets.next().part); });
      back.emplace_back([&sets] { sets.next().backward(); });
    }
    const TwoRates ahead = fitted(forward, of_each(there),
                                  {host.attention_forward, host.scores_forward}),
                   behind = fitted(backward, of_each(back),
                                   {host.attention_backward, host.scores_backward});
    host.attention_forward = ahead.first;
    host.scores_forward = ahead.second;
    host.attention_backward = behind.first;
    host.scores_backward = behind.second;
  }

  /// A small operation with its gradient.
  double operation() const {
    const auto tensor = [] { return at::ones({8, 8}, at::TensorOptions(at::kFloat)); };
    const at::Tensor x = tensor().requires_grad_(), weight = tensor().requires_grad_(),
                     scale = at::ones({8}, at::TensorOptions(at::kFloat));
    const at::AutoGradMode with_gradients(true);
    constexpr double kOperations = 8;  // four, with their gradients
    return seconds([&] {
             const at::Tensor y = kernels::linear(kernels::rms_norm(x, scale, 1e-5), weight);
             kernels::swiglu(y, y).sum().backward();
           }) /
           kOperations;
  }

  double copy() const {
    constexpr std::int64_t kElements = 1 << 22;
    Cold<CopiedTensors> tensors(2 * sizeof(float) * kElements,
                                [] { return CopiedTensors(kElements); });
    return 2 * sizeof(float) * kElements / seconds([&] { tensors.next().copy(); });
  }

 private:
  /// The mean over ranks.
  std::vector<double> of_each(const Works& works) const {
    comm::Communicator& all = world_.control();
    std::vector<double> out =
        medians_of_turns(all, works, budget_ * static_cast<double>(works.size()));
    for (double& seconds : out)
      seconds = comm::all_reduce_scalar(all, seconds, comm::Op::sum) / all.size();
    return out;
  }
  static TwoRates fitted(std::vector<TimedWork> works, const std::vector<double>& seconds,
                         const TwoRates& usual) {
    for (std::size_t i = 0; i < works.size(); ++i) works[i].seconds = seconds[i];
    return fit_two_rates(works, usual);
  }

  comm::World& world_;
  double budget_;
};

struct ThreadFigures {
  double rate = 1, fork = 0;
};

/// Seconds of a product on one core, as fitted, to those on all cores: 1 if nothing is lost.
double thread_rate(const Host& host, const GemmShape& s, at::ScalarType type, double budget) {
  const double bytes = ProductTensors(s, type).bytes();
  Cold<ProductTensors> tensors(bytes, [&] { return ProductTensors(s, type); });
  const bool wide = type == at::kFloat;
  const double one =
      flops_of(s) / (wide ? host.f32_flops_per_second : host.bf16_flops_per_second) +
      bytes / (wide ? host.f32_operand_bytes_per_second : host.bf16_operand_bytes_per_second);
  const double all = seconds_here([&] { tensors.next().multiply(); }, budget);
  return one / (all * host.cores);
}

/// Of rank 0 alone with all cores. `rate`: the mean of kThreadedProducts.
ThreadFigures measure_threads(const Host& host, double budget) {
  ThreadFigures out{0, 0};
  at::set_num_threads(host.cores);
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16})
    for (const GemmShape& s : kThreadedProducts)
      out.rate += thread_rate(host, s, type, budget) / (2 * kThreadedProducts.size());
  out.rate = std::clamp(out.rate, 0.1, 1.0);
  const std::int64_t elements = 1 << 15;
  const at::Tensor small = at::empty({elements}), large = at::empty({elements * host.cores});
  const double forked = seconds_here([&] { large.fill_(1); }, budget);
  at::set_num_threads(1);
  out.fork = std::max(0.0, forked - seconds_here([&] { small.fill_(1); }, budget));
  return out;
}

/// Other ranks sleep until rank 0 is done: waiting in MPI would take their cores.
template <class Work>
void on_rank_zero_alone(comm::World& world, const Work& work) {
  std::int64_t done = 0;
  if (world.rank() == 0) work();
  comm::Request all = world.control().all_reduce({&done, 1, DType::i64});
  while (!all.test()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace

void measure_cores(comm::World& world, double seconds, Host& host) {
  kernels::choose_host_kernels("auto");
  train::keep_freed_memory();
  use_cores_of_all(world);
  at::set_num_threads(1);
  const at::AutoGradMode without_gradients(false);
  const CoreMeter meter(world, seconds / kMeasurements);
  host.kernel_seconds = meter.operation();
  const TwoRates f32 =
                     meter.products(at::kFloat, host.kernel_seconds,
                                    {host.f32_flops_per_second, host.f32_operand_bytes_per_second}),
                 bf16 = meter.products(
                     at::kBFloat16, host.kernel_seconds,
                     {host.bf16_flops_per_second, host.bf16_operand_bytes_per_second});
  host.f32_flops_per_second = f32.first;
  host.f32_operand_bytes_per_second = f32.second;
  host.bf16_flops_per_second = bf16.first;
  host.bf16_operand_bytes_per_second = bf16.second;
  meter.attention(host);
  host.copy_bytes_per_second = meter.copy();
  if (host.cores == 1) return;
  on_rank_zero_alone(world, [&] {
    const ThreadFigures figures = measure_threads(host, seconds / kMeasurements);
    host.thread_rate = figures.rate;
    host.fork_seconds = figures.fork;
  });
}

}  // namespace tessera::app
