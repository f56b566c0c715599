// SPDX-License-Identifier: Apache-2.0
#include "cell_time.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cell_parts.hpp"
#include "kept_bytes.hpp"
#include "physics.hpp"

namespace tessera::planner {

HiddenSeconds hidden_of(const CellTime& cell, const Machine& machine) {
  if (machine.host) return {};
  const bool again = cell.recomputed[Category::ep] > 0;
  const double waits = cell.input[Category::ep] + cell.recomputed[Category::ep];
  // A recomputed forward has as many transfers as the gradients have. The other pass is at its end
  // after these, so that it hides half of all, and half of the backward hides its own.
  const double beside = (cell.backward() - waits) / (again ? 2 : 1);
  // The exchange takes multiprocessors from what hides it.
  const double share = 1 - physics::kExchangeShare;
  return {share * std::min(cell.travels, beside),
          share * std::min(cell.travels, cell.forward.total() - cell.forward[Category::ep])};
}

double longer(double busy, double launches) {
  return std::pow(std::pow(busy, 4) + std::pow(launches, 4), 0.25);
}

double launches_within(double whole, double busy) {
  return std::pow(std::max(0.0, std::pow(whole, 4) - std::pow(busy, 4)), 0.25);
}

const char* name_of(Category category) {
  constexpr std::array<const char*, kCategories> kNames{
      "gemm",    "grouped gemm", "attention", "memory-bound", "casts", "loss",
      "tp",      "cp",           "ep",        "dp",           "pp",    "fsdp copies",
      "offload", "launches",     "optimizer", "waiting"};
  return kNames[static_cast<std::size_t>(category)];
}

Times& Times::add(const Times& other, double factor) {
  for (std::size_t i = 0; i < kCategories; ++i) seconds[i] += other.seconds[i] * factor;
  return *this;
}

double Times::total() const { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }

CellTime& CellTime::add(const CellTime& other, double factor) {
  forward.add(other.forward, factor);
  input.add(other.input, factor);
  weight.add(other.weight, factor);
  recomputed.add(other.recomputed, factor);
  calls += other.calls * factor;
  travels += other.travels * factor;
  return *this;
}

CellClock::CellClock(const Workload& work, const Machine& machine, const Stack& stack)
    : work_(work), machine_(machine), stack_(stack) {}

CellTime CellClock::block(bool mixture) const {
  const double share = work_.recompute == Recompute::none ? 1 : work_.recomputed_blocks;
  CellTime mean;
  mean.add(block_with(mixture, work_.recompute), share);
  if (share < 1) mean.add(block_with(mixture, Recompute::none), 1 - share);
  return mean;
}

CellTime CellClock::block_with(bool mixture, Recompute recompute) const {
  CellParts parts(work_, machine_, stack_, recompute);
  parts.kernels = kernels_;
  parts.attention();
  if (mixture)
    parts.mixture();
  else
    parts.feed_forward(static_cast<double>(work_.model.hidden));
  if (work_.offload) offload(parts.time, kept_bytes(work_, stack_, mixture, recompute));
  if (work_.offloaded_layers > 0) offload(parts.time, bytes_of_layer());
  host(parts.time, mixture);
  return parts.time;
}

/// Of a published stack that offloads some layers, in the mean of all.
double CellClock::bytes_of_layer() const {
  const Architecture& model = work_.model;
  const double dim = static_cast<double>(model.dim),
               heads = static_cast<double>(model.heads + 2 * model.kv_heads),
               hidden = static_cast<double>(model.hidden);
  const double share = std::min(
      1.0, static_cast<double>(work_.offloaded_layers) / static_cast<double>(model.layers));
  const double kept = format_of(work_.precision) == Format::bf16 ? 2 : 1;  // inputs of products
  return share * work_.local_tokens() / work_.tp *
         (4 * dim + 2 * heads * static_cast<double>(model.head_dim) + kept * 3 * dim +
          (4 + kept) * hidden);
}

/// The computation of a block hides the copies of another one.
void CellClock::offload(CellTime& out, double bytes) const {
  const double link = bytes / machine_.host_bytes_per_second;
  const double memory = stream_seconds(machine_, bytes);
  out.forward[Category::offload] += std::max(0.0, link - out.forward.total()) + memory;
  out.input[Category::offload] += std::max(0.0, link - out.backward()) + memory;
}

/// Operations on a host of each pair of a range of queries with one of keys that it sees: slices,
/// the attention, and sums in float32.
constexpr Launches kLaunchesOfARange{12, 24};

/// More of a mixture's, where tokens go once to each rank (simulated-gpu.md counts them).
constexpr double kLaunchesOfTokensOnce = 23, kWithACapacity = 12;

void CellClock::host(CellTime& out, bool mixture) const {
  constexpr std::array<double, 3> kLaunchedWithGraphs{1, 0.6, 0};
  const double each =
      stack_.host_us * 1e-6 * kLaunchedWithGraphs[static_cast<std::size_t>(work_.graphs)];
  Launches launches = stack_.kernels;
  if (mixture) {
    const double local = static_cast<double>(work_.model.mixture->experts) / work_.ep;
    launches = {stack_.mixture_kernels.forward + local * stack_.expert_kernels.forward,
                stack_.mixture_kernels.backward + local * stack_.expert_kernels.backward};
    if (work_.dispatcher == Dispatcher::once_a_rank && work_.ep > 1)
      launches.forward += work_.expert_capacity > 0 ? kWithACapacity : kLaunchesOfTokensOnce;
  }
  if (machine_.host) {  // the same cores start an operation and do it
    const HostRank& host = *machine_.host;
    if (work_.cp > 1) {  // each range of a rank sees some of the others
      const double seen = work_.ranges_in_order ? work_.cp : 2 * work_.cp + 1;
      launches.forward += seen * kLaunchesOfARange.forward;
      launches.backward += seen * kLaunchesOfARange.backward;
    }
    const double operation =
        host.node.kernel_seconds + (host.threads > 1 ? host.node.fork_seconds : 0);
    out.forward[Category::host] += launches.forward * operation;
    out.input[Category::host] += launches.backward * operation;
    return;
  }
  // What the host lags behind in forward, it catches up with in backward.
  const double busy = out.forward.total() + out.backward();
  const double behind = longer(busy, (launches.forward + launches.backward) * each) - busy;
  out.forward[Category::host] += behind / 3;
  out.input[Category::host] += behind * 2 / 3;
}

CellTime CellClock::embedding() const {
  CellParts parts(work_, machine_, stack_, Recompute::none);
  const double values = static_cast<double>(work_.model.dim) * work_.local_tokens();
  parts.stream(4 * values, 10 * values, false);
  return parts.time;
}

CellTime CellClock::head() const {
  CellParts parts(work_, machine_, stack_, Recompute::none);
  parts.kernels = kernels_;
  const double dim = static_cast<double>(work_.model.dim),
               vocab = static_cast<double>(work_.model.vocab) / work_.tp;
  const Format format = work_.precision == Precision::f32 ? Format::f32 : Format::bf16;
  parts.linear(parts.tokens(), vocab, dim, {.format = format});
  const double whole = work_.loss_parallel ? vocab : static_cast<double>(work_.model.vocab);
  const double loss =
      stream_seconds(machine_, stack_.loss_traffic_bytes * parts.tokens() * whole) / 2;
  parts.time.forward[Category::loss] += loss;
  parts.time.input[Category::loss] += loss;
  if (!work_.loss_parallel) parts.gather_logits();
  parts.stream(4 * dim * parts.rows(), 8 * dim * parts.rows(), false);
  return parts.time;
}

CellTime CellClock::predictor() const {
  CellTime out = block(work_.model.is_mixture(work_.model.layers - 1));
  CellParts parts(work_, machine_, stack_, Recompute::none);
  const double dim = static_cast<double>(work_.model.dim);
  parts.linear(parts.rows(), dim, 2 * dim);
  return out.add(parts.time).add(head());
}

}  // namespace tessera::planner
