// SPDX-License-Identifier: Apache-2.0
// How much of the communication of sharded parameters, of replicas and of pipelines hides behind
// computation, in the program's own passes over a simulated wire: `name hidden_share target`, for 2
// and 4 ranks. Cells sleep for their computing time, so two cores suffice.
#include "tessera/kernels/tensor.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <vector>

#include "mpi/comm/paced_communicator.hpp"
#include "mpi/train/sleeping.hpp"
#include "tessera/comm/world.hpp"
#include "tessera/parallel/executor.hpp"
#include "tessera/schedule/schedule.hpp"

namespace {

using namespace tessera;
using mesh::Axis;
using schedule::ActionKind;

constexpr std::int64_t kTokens = 4;
constexpr int kRounds = 5;
constexpr double kForward_seconds = 0.012;  ///< of a block, or of a pipeline stage

struct Job {
  const char* name;
  mesh::Degrees degrees;
  std::string axis;  ///< that has the slow wire
  /// time on the wire / time of computing
  double wire = 0.5;
  int microbatches = 1;
  bool trains = true;  ///< false: forward alone
  schedule::Kind schedule = schedule::Kind::one_f_one_b;
};

/// Blocks and an embedding of 1.5 times their size, which computes nothing.
model::Model blocks() {
  model::DecoderShape shape;
  shape.dim = 64;
  shape.layers = 16;
  shape.heads = shape.kv_heads = 4;
  shape.head_dim = 16;
  shape.hidden = 192;
  shape.vocab = 1248;
  return model::make_decoder(shape, kTokens, at::kFloat);
}

/// One unit sleeps in its first cell.
std::vector<test::Nap> naps_of(const model::Model& model) {
  std::vector<test::Nap> naps(model.cells.size());
  for (std::size_t u = 0; u < model.units.size(); ++u)
    if (u > 0 || model.units.size() == naps.size())
      naps[static_cast<std::size_t>(model.units[u].begin)] = {kForward_seconds, kForward_seconds,
                                                              kForward_seconds};
  return naps;
}

/// Steps of one job over wires of one speed.
class Steps {
 public:
  Steps(comm::World& world, const Job& job, double bytes_per_second)
      : world_(world),
        job_(job),
        map_(traits_of(job.schedule).usual_map(job.degrees.pp)),
        model_(job.degrees.pp > 1 ? test::empty_model(map_.stages()) : blocks()),
        naps_(naps_of(model_)),
        mesh_(world, mesh::Layout::resolve(job.degrees, world.size()), comm::Backend::mpi,
              wires(bytes_per_second)),
        stages_(napping(), ranges(), map_, mesh_, options()),
        executor_(stages_, mesh_),
        lists_(job.trains ? make_schedule(job.schedule, map_, job.microbatches) : forwards()),
        data_(static_cast<std::size_t>(job.microbatches), microbatch()) {
    for (const schedule::StageIndex stage : map_.stages_of(rank()))
      for (std::int64_t i = ranges()[stage].begin; i < ranges()[stage].end(); ++i) {
        naps_[static_cast<std::size_t>(i)].log = &log_;
        naps_[static_cast<std::size_t>(i)].gradients = &stages_.at(stage).weight_gradients();
      }
    stages_.initialize(1);
  }

  /// Seconds of one step, on the slowest rank.
  double once() {
    log_ = {};
    world_.control().barrier();
    const auto begin = std::chrono::steady_clock::now();
    stages_.begin_step(job_.microbatches);
    if (job_.trains) {
      executor_.run(lists_[rank()], data_, 0, 1.0);
      stages_.finish_gradients();
    } else {
      executor_.evaluate(lists_[rank()], data_);
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    stages_.end_step();
    return most(taken.count());
  }
  double slept() const { return most(log_.slept); }
  /// Of all steps.
  double wire_bytes() const {
    double bytes = 0;
    mesh_.visit([&](const comm::Communicator& each) {
      const auto* paced = dynamic_cast<const test::PacedCommunicator*>(&each);
      if (paced && is_slow(each)) bytes += paced->wire_bytes();
    });
    return most(bytes);
  }

 private:
  bool is_slow(const comm::Communicator& each) const {
    return each.axis() == job_.axis || (job_.axis == "pp" && each.axis() == mesh::kUpstream);
  }
  /// Where the axis under test is slow, the others take no time.
  mesh::DeviceMesh::Decorate wires(double bytes_per_second) const {
    return [this, bytes_per_second](std::unique_ptr<comm::Communicator> inner) {
      const double speed = is_slow(*inner) ? bytes_per_second : 1e18;
      return test::paced({0, speed, true})(std::move(inner));
    };
  }
  model::Model& napping() {
    test::add_naps(model_, naps_);
    return model_;
  }
  plan::StageRanges ranges() const {
    plan::StageRanges ranges;
    const auto cells = static_cast<std::int64_t>(model_.cells.size());
    for (int i = 0; i < map_.stages(); ++i)
      ranges.push_back({i * cells / map_.stages(), cells / map_.stages()});
    return ranges;
  }
  static parallel::StageOptions options() {
    parallel::StageOptions options;
    options.microbatch.seq = kTokens;
    return options;
  }
  schedule::ActionLists forwards() const {
    schedule::ActionLists lists(1);
    for (int m = 0; m < job_.microbatches; ++m)
      lists[schedule::PipelineRank(0)].push_back(
          {ActionKind::forward, schedule::StageIndex(0), schedule::MicrobatchIndex(m)});
    return lists;
  }
  static parallel::Microbatch microbatch() {
    const at::Tensor tokens = at::zeros({kTokens}, at::kLong);
    return {tokens, tokens, {}};
  }
  schedule::PipelineRank rank() const { return schedule::PipelineRank(mesh_.coord(Axis::pp)); }
  double most(double value) const {
    return comm::all_reduce_scalar(world_.control(), value, comm::Op::max);
  }

  comm::World& world_;
  Job job_;
  schedule::StageMap map_;
  model::Model model_;
  std::vector<test::Nap> naps_;
  test::NapLog log_;
  mesh::DeviceMesh mesh_;
  parallel::Stages stages_;
  parallel::Executor executor_;
  schedule::ActionLists lists_;
  std::vector<parallel::Microbatch> data_;
};

/// By turns with a wire that takes no time; of each the best, for a busy machine wakes sleepers
/// late.
void measure(comm::World& world, const Job& job) {
  Steps free(world, job, 1e18);
  free.once();
  const double before = free.wire_bytes();
  free.once();
  const double bytes = free.wire_bytes() - before, compute = free.slept(),
               wire = job.wire * compute;
  Steps slow(world, job, bytes / wire);
  slow.once();
  double alone = HUGE_VAL, together = HUGE_VAL;
  for (int i = 0; i < kRounds; ++i) {
    alone = std::min(alone, free.once());
    together = std::min(together, slow.once());
  }
  if (world.rank() != 0) return;
  const double waited = together - alone;
  std::printf("%-34s compute %6.1f ms  wire %6.1f ms  waited %6.1f ms  hidden %.2f  target 0.80\n",
              job.name, 1e3 * compute, 1e3 * wire, 1e3 * waited,
              1 - waited / std::min(compute, wire));
}

}  // namespace

int main(int argc, char** argv) {
  comm::World world(&argc, &argv);
  at::set_num_threads(1);
  const int n = world.size();
  using enum schedule::Kind;
  if (n == 4)
    measure(world,
            {"HSDP 2 x 2, replica sums", {.dp_replicate = 2, .dp_shard = 2}, "dp_replicate"});
  else
    measure(world, {"DDP, replica sums", {.dp_replicate = n, .dp_shard = 1}, "dp_replicate"});
  const mesh::Degrees sharded{.dp_shard = n}, pipelined{.pp = n, .dp_shard = 1};
  measure(world, {"FSDP, gathers of forward", sharded, "dp_shard", 0.5, 1, false});
  measure(world, {"FSDP, gathers and reduce-scatters", sharded, "dp_shard"});
  measure(world, {"1F1B, transfers", pipelined, "pp", 0.3, 16});
  measure(world, {"Eager1F1B, transfers", pipelined, "pp", 0.3, 16, true, eager_one_f_one_b});
  measure(world, {"ZBH1, transfers", pipelined, "pp", 0.3, 16, true, zb_h1});
  measure(world, {"Interleaved1F1B, transfers", pipelined, "pp", 0.3, 16, true, interleaved});
}
