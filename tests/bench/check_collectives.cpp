// SPDX-License-Identifier: Apache-2.0
// What debug.check_collectives costs: steps of the debug Llama in float32 with it and without, by
// turns in one process; prints `name off (ms) on (ms) ratio target`, the ratio being the median
// over pairs of neighbouring steps.
//
//   mpirun -n 2 check_collectives --parallelism.tensor_parallel_degree 2
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/config/resolve.hpp"
#include "tessera/train/device.hpp"
#include "tessera/train/setup.hpp"
#include "tessera/train/trainer.hpp"

namespace {

using namespace tessera;

constexpr std::int64_t kSeq = 256, kVocab = 2048;
constexpr int kPairs = 60, kWarmUp = 4;

/// Tokens that a counter gives.
class Tokens final : public data::SampleSource {
 public:
  std::int64_t seq_len() const override { return kSeq; }
  std::optional<std::int64_t> sample_limit() const override { return std::nullopt; }
  void read(std::int64_t sample, std::span<std::int32_t> inputs,
            std::span<std::int32_t> labels) const override {
    for (std::int64_t t = 0; t < kSeq; ++t) {
      inputs[static_cast<std::size_t>(t)] = token(sample, t);
      labels[static_cast<std::size_t>(t)] = token(sample, t + 1);
    }
  }

 private:
  static std::int32_t token(std::int64_t sample, std::int64_t t) {
    const auto mixed = static_cast<std::uint64_t>(sample * kSeq + t) * 0x9E3779B97F4A7C15u;
    return static_cast<std::int32_t>((mixed >> 33) % kVocab);
  }
};

config::Resolved job_of(int ranks, int argc, char** argv) {
  std::vector<std::string> flags{"--training.dataset=replay",
                                 "--training.dataset_path=none-is-read",
                                 "--training.seq_len=256",
                                 "--training.local_batch_size=2",
                                 "--training.global_batch_size=" + std::to_string(4 * ranks),
                                 "--training.mixed_precision_param=float32",
                                 "--activation_checkpoint.mode=none",
                                 "--training.steps=" + std::to_string(kWarmUp + 2 * kPairs)};
  for (int i = 1; i < argc; ++i) flags.emplace_back(argv[i]);
  return config::resolve(flags);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

double seconds_of_step(comm::World& world, train::Trainer& trainer, bool checks) {
  world.control().barrier();
  comm::set_check_collectives(checks);
  const auto began = std::chrono::steady_clock::now();
  trainer.step();
  const double mine =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  comm::set_check_collectives(false);
  return mine;
}

void run(comm::World& world, const config::Resolved& resolved) {
  const plan::JobPlan plan = plan::plan_job(resolved, world.size(), kVocab);
  const at::Device device = at::kCPU;
  const model::Model model = train::model_of(plan, device);
  mesh::DeviceMesh mesh(world, plan.layout, comm::Backend::mpi);
  const Tokens source;
  train::Trainer trainer(plan, model, mesh, source, device);
  trainer.stages().initialize(1);
  std::int64_t step = 0;
  for (; step < kWarmUp; ++step) seconds_of_step(world, trainer, step % 2 == 1);
  std::vector<double> off, on, ratios;
  for (int pair = 0; pair < kPairs; ++pair) {
    const bool first = pair % 2 == 1;  // each goes first in every other pair
    const double a = seconds_of_step(world, trainer, first),
                 b = seconds_of_step(world, trainer, !first);
    off.push_back(first ? b : a), on.push_back(first ? a : b);
    ratios.push_back(on.back() / off.back());
  }
  if (world.rank() == 0)
    std::printf("check_collectives on %s  %.1f  %.1f  %.3f  <= 1.02\n",
                plan.layout.to_string().c_str(), 1e3 * median(off), 1e3 * median(on),
                median(ratios));
}

}  // namespace

int main(int argc, char** argv) {
  comm::World world(nullptr, nullptr);
  train::use_share_of_cores(world);
  try {
    run(world, job_of(world.size(), argc, argv));
  } catch (const Error& error) {
    std::fprintf(stderr, "check_collectives: %s\n", error.what());
    world.abort(static_cast<int>(error.code()));
  }
}
