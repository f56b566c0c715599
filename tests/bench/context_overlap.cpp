// SPDX-License-Identifier: Apache-2.0
// How much of ring attention's communication hides behind its computation, over a simulated wire
// that is as slow as half of the computation: `name hidden_share target`, on every rank count that
// mpirun gives.
#include "tessera/kernels/tensor.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "mpi/comm/paced_communicator.hpp"
#include "tessera/comm/world.hpp"
#include "tessera/parallel/context_attention.hpp"

namespace {

using namespace tessera;
using at::Tensor;
using plan::Rotation;

constexpr std::int64_t kHeads = 8, kKeyHeads = 2, kHeadDim = 64;
constexpr int kRounds = 9;

struct Seconds {
  double forward, backward;
};

/// Of one run, on the slowest rank.
struct Run {
  Seconds whole, waited;
};

class Bench {
 public:
  Bench(comm::World& world, std::int64_t seq)
      : world_(world), cut_(plan::SequenceCut::make(seq, world.size(), true)) {
    input_.q = at::randn({1, cut_.positions(), kHeads, kHeadDim}).requires_grad_();
    input_.k = at::randn({1, cut_.positions(), kKeyHeads, kHeadDim}).requires_grad_();
    input_.v = at::randn({1, cut_.positions(), kKeyHeads, kHeadDim}).requires_grad_();
  }

  /// Computing is real here, so it needs a core for each rank. What counts is the time that ranks
  /// waited, less what they wait for each other on a wire that takes no time: whole times would
  /// tell less, for a core that shares its units with another one computes faster while that one
  /// waits.
  void run(Rotation rotation, const char* name) {
    const auto free = test::paced({0, 1e18, true})(world_.make(comm::Backend::mpi, "cp"));
    std::vector<Run> before;
    for (int i = 0; i < kRounds; ++i) before.push_back(once(*free, rotation));
    const double forward = median(before, &Run::whole, &Seconds::forward);
    const double blocks = world_.size() - 1, bytes = 2.0 * static_cast<double>(input_.k.nbytes());
    const test::Wire wire{0, bytes * blocks / (0.5 * forward), true};
    const auto slow = test::paced(wire)(world_.make(comm::Backend::mpi, "cp"));
    const double gradients = rotation == Rotation::ring ? world_.size() : blocks;
    const Seconds on_wire{blocks * bytes / wire.bytes_per_second,
                          (blocks + gradients) * bytes / wire.bytes_per_second};
    std::vector<Run> alone, together;
    for (int i = 0; i < kRounds; ++i) {  // by turns, so that what else the machine does meets both
      alone.push_back(once(*free, rotation));
      together.push_back(once(*slow, rotation));
    }
    // Behind the last block's computation its gradients go home, and gathered blocks' are summed at
    // the end.
    const double last = (rotation == Rotation::ring ? 1 : blocks) / (blocks + gradients);
    print(name, "forward", alone, on_wire, together, &Seconds::forward, 1);
    print(name, "backward", alone, on_wire, together, &Seconds::backward, 1 - last);
  }

 private:
  Run once(comm::Communicator& cp, Rotation rotation) {
    world_.control().barrier();
    const auto begin = std::chrono::steady_clock::now();
    const double waited = cp.traffic().exposed_seconds;
    const Tensor out = parallel::context_attention(input_, {&cp, cut_, rotation}, nullptr);
    const double waited_forward = cp.traffic().exposed_seconds;
    world_.control().barrier();
    const auto between = std::chrono::steady_clock::now();
    out.sum().backward();
    const double waited_both = cp.traffic().exposed_seconds;
    world_.control().barrier();
    const std::chrono::duration<double> forward = between - begin,
                                        backward = std::chrono::steady_clock::now() - between;
    const auto slowest = [&](double seconds) {
      return comm::all_reduce_scalar(world_.control(), seconds, comm::Op::max);
    };
    return {{slowest(forward.count()), slowest(backward.count())},
            {slowest(waited_forward - waited), slowest(waited_both - waited_forward)}};
  }
  static double median(const std::vector<Run>& all, Seconds Run::*what, double Seconds::*pass) {
    std::vector<double> values;
    for (const Run& one : all) values.push_back(one.*what.*pass);
    std::ranges::nth_element(values, values.begin() + kRounds / 2);
    return values[kRounds / 2];
  }
  void print(const char* name, const char* pass, const std::vector<Run>& alone, const Seconds& wire,
             const std::vector<Run>& together, double Seconds::*which, double possible) const {
    if (world_.rank() != 0) return;
    const double compute = median(alone, &Run::whole, which),
                 skew = median(alone, &Run::waited, which),
                 waited = median(together, &Run::waited, which);
    const double hidden = 1 - (waited - skew) / std::min(compute, wire.*which);
    std::printf(
        "%-10s %-8s compute %6.1f ms  wire %6.1f ms  waited %6.1f ms  hidden %.2f of %.2f that can "
        " target %.2f\n",
        name, pass, 1e3 * compute, 1e3 * (wire.*which), 1e3 * (waited - skew), hidden, possible,
        0.8 * possible);
  }

  comm::World& world_;
  plan::SequenceCut cut_;
  model::Attention input_;
};

}  // namespace

int main(int argc, char** argv) {
  comm::World world(&argc, &argv);
  at::set_num_threads(1);
  Bench bench(world, 4096);
  bench.run(Rotation::ring, "ring");
  bench.run(Rotation::all_gather, "all_gather");
}
