// Initial values, checkpoints and resumed runs, on meshes of eight ranks: bit for bit.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "mpi/comm/mpi_main.hpp"
#include "mpi/train/tiny_model.hpp"
#include "tessera/base/error.hpp"
#include "tessera/mesh/device_mesh.hpp"
#include "tessera/train/hf_weights.hpp"
#include "tessera/train/trainer.hpp"
#include "tessera/train/training_state.hpp"

namespace tessera::test {
namespace {

namespace fs = std::filesystem;

/// A trainer on one mesh of the world's ranks; with `alone`, on one rank, by each rank for itself.
class Fixture {
 public:
  explicit Fixture(const mesh::Degrees& degrees, bool alone = false, bool tied = true,
                   const std::string& schedule = "1F1B", const std::string& family = "", bool async = false)
      : layout_(mesh::Layout::resolve(degrees, alone ? 1 : world().size())),
        resolved_(job(layout_, schedule, async)),
        mesh_(alone ? std::make_unique<mesh::DeviceMesh>(layout_, 0)
                    : std::make_unique<mesh::DeviceMesh>(world(), layout_, comm::Backend::mpi)),
        model_(family.empty() ? tiny_model(tied, torch::kFloat32) : tiny_family(family, torch::kFloat32)),
        trainer_(resolved_.job, model_, *mesh_, train::BatchPlan::make(resolved_.job, layout_), source_, torch::kCPU) {}

  train::Trainer& trainer() { return trainer_; }
  const config::Resolved& resolved() const { return resolved_; }

  /// FNV-1a over the bits of every whole tensor that `pick` chooses; on rank 0 of the mesh.
  template <class Pick>
  std::uint64_t hash(Pick pick) {
    std::uint64_t hash = 0xcbf29ce484222325u;
    train::for_each_whole(trainer_.stages().params(), model_, mesh_->control(), pick,
                          [&](const model::ParamSpec&, const torch::Tensor& whole) {
                            const torch::Tensor values = whole.contiguous();
                            const auto* bytes = static_cast<const unsigned char*>(values.data_ptr());
                            for (std::size_t i = 0; i < values.nbytes(); ++i) hash = (hash ^ bytes[i]) * 0x100000001b3u;
                          });
    return hash;
  }
  std::uint64_t weights() {
    return hash([](const parallel::ShardedParam& param) { return param.master; });
  }
  std::uint64_t moments() {
    return hash([this](const parallel::ShardedParam& param) {
      for (auto& state : trainer_.optimizer_states())
        if (state.param.is_same(param.master)) return state.exp_avg + 3 * state.exp_avg_sq;
      return torch::Tensor();
    });
  }

 private:
  static config::Resolved job(const mesh::Layout& layout, const std::string& schedule, bool async) {
    config::Resolved resolved;
    resolved.job = tiny_job("float32");
    resolved.job.training.local_batch_size = 16 / layout.dp_degree();
    resolved.job.parallelism.pipeline_parallel_microbatch_size =
        std::min<std::int64_t>(2, resolved.job.training.local_batch_size);
    resolved.job.debug.deterministic = true;
    resolved.job.parallelism.enable_async_tensor_parallel = async;
    resolved.job.parallelism.async_tensor_parallel_chunks = 3;
    resolved.job.training.steps = 20;
    resolved.job.parallelism.pipeline_parallel_schedule = schedule;
    return resolved;
  }

  mesh::Layout layout_;
  config::Resolved resolved_;
  std::unique_ptr<mesh::DeviceMesh> mesh_;
  model::Model model_;
  UnevenSource source_;
  train::Trainer trainer_;
};

const std::vector<mesh::Degrees> kMeshes{{2, 1, 2, 1, 2}, {4, 1, 1, 1, 2}, {1, 1, 8, 1, 1},
                                         {1, 2, 2, 1, 2}, {8, 1, 1, 1, 1}, {1, 1, 1, 1, 8}};

/// A folder of this test's own, the same on all ranks, removed at the end.
class SharedFolder {
 public:
  SharedFolder()
      : path_(comm::broadcast_string(world().control(),
                                     fs::temp_directory_path() / fmt::format("tessera-state-{}", getpid()), 0)) {}
  ~SharedFolder() {
    world().control().barrier();
    if (world().rank() == 0) fs::remove_all(path_);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

void save(Fixture& fixture, const SharedFolder& folder, const train::Position& position) {
  checkpoint::Saver saver(world().control());
  train::save_state(saver, fixture.trainer(), fixture.resolved(), folder.path(), position);
}

TEST(State, InitialValuesDoNotDependOnTheMesh) {
  Fixture alone({1, 1, 1, 1, 1}, true);
  alone.trainer().stages().initialize(11);
  const std::uint64_t expected = alone.weights();
  for (const mesh::Degrees& degrees : kMeshes) {
    Fixture fixture(degrees);
    fixture.trainer().stages().initialize(11);
    const std::uint64_t hash = fixture.weights();
    if (world().rank() == 0) {
      EXPECT_EQ(hash, expected) << degrees.pp << " " << degrees.dp_shard << " " << degrees.tp;
    }
  }
  alone.trainer().stages().initialize(12);
  EXPECT_NE(alone.weights(), expected);
}

TEST(State, CheckpointLoadsOnEveryMesh) {
  const SharedFolder folder;
  Fixture saved(kMeshes[0]);
  saved.trainer().stages().initialize(5);
  for (int step = 0; step < 2; ++step) saved.trainer().step(step, 0);
  save(saved, folder, {2, 32});
  const std::uint64_t weights = saved.weights(), moments = saved.moments();
  for (const mesh::Degrees& degrees : kMeshes) {
    Fixture loaded(degrees);
    const auto position = train::load_state(loaded.trainer(), folder.path(), -1);
    ASSERT_TRUE(position);
    EXPECT_EQ(position->step, 2);
    EXPECT_EQ(loaded.trainer().optimizer().steps(), 2);
    const std::uint64_t hash = loaded.weights(), other = loaded.moments();
    if (world().rank() != 0) continue;
    EXPECT_EQ(hash, weights) << degrees.pp << " " << degrees.dp_shard << " " << degrees.tp;
    EXPECT_EQ(other, moments);
  }
  Fixture alone({1, 1, 1, 1, 1}, true);
  ASSERT_TRUE(train::load_state(alone.trainer(), folder.path(), -1));
  if (world().rank() == 0) {
    EXPECT_EQ(alone.weights(), weights);
  }
}

mesh::Degrees with_experts(mesh::Degrees degrees, int ep, int etp = 1) {
  degrees.ep = ep;
  degrees.etp = etp;
  return degrees;
}

/// Experts, and the biases that even them out, from one expert mesh onto others; mixtral's are cut in parts on some.
TEST(State, MixturesLoadOnEveryMesh) {
  for (const std::string family : {"deepseek_v3", "mixtral"}) {
    const SharedFolder folder;
    Fixture saved(with_experts({1, 1, 4, 1, 2}, 4), false, true, "1F1B", family);
    saved.trainer().stages().initialize(5);
    for (int step = 0; step < 3; ++step) saved.trainer().step(step, 0);  // two steps of a bias may undo each other
    save(saved, folder, {3, 48});
    const std::uint64_t weights = saved.weights(), moments = saved.moments();
    const std::vector<torch::Tensor> biases = saved.trainer().stages().holdings().buffers;
    EXPECT_EQ(biases.empty(), family == "mixtral");
    for (const mesh::Degrees& degrees :
         {with_experts({2, 1, 4, 1, 1}, 2), with_experts({1, 2, 4, 1, 1}, 1), with_experts({1, 1, 8, 1, 1}, 1),
          with_experts({1, 1, 4, 1, 2}, 2, 2), with_experts({4, 1, 1, 1, 2}, 2)}) {
      Fixture loaded(degrees, false, true, "1F1B", family);
      ASSERT_TRUE(train::load_state(loaded.trainer(), folder.path(), -1));
      const std::uint64_t hash = loaded.weights(), other = loaded.moments();
      const std::vector<torch::Tensor> theirs = loaded.trainer().stages().holdings().buffers;
      for (std::size_t i = 0; i < biases.size(); ++i) {
        EXPECT_GT(biases[i].abs().max().item<double>(), 0);
        if (theirs[i].defined()) {
          EXPECT_TRUE(theirs[i].equal(biases[i])) << i;
        }
      }
      if (world().rank() != 0) continue;
      EXPECT_EQ(hash, weights) << family << " " << degrees.pp << " " << degrees.dp_shard << " " << degrees.ep;
      EXPECT_EQ(other, moments);
    }
  }
}

TEST(State, AsynchronousTensorParallelHasTheBitsOfTheSynchronousOne) {
  for (const char* schedule : {"1F1B", "ZBH1"}) {
    std::vector<std::uint64_t> hashes;
    for (const bool async : {false, true}) {
      Fixture fixture({2, 1, 2, 1, 2}, false, true, schedule, "", async);
      fixture.trainer().stages().initialize(5);
      for (int step = 0; step < 2; ++step) fixture.trainer().step(step, 0);
      hashes.push_back(fixture.weights());
    }
    if (world().rank() == 0) {
      EXPECT_EQ(hashes[0], hashes[1]) << schedule;
    }
  }
}

TEST(State, ResumedRunHasTheBitsOfTheUninterruptedOne) {
  const SharedFolder folder;
  Fixture whole(kMeshes[0]);
  whole.trainer().stages().initialize(5);
  for (int step = 0; step < 4; ++step) whole.trainer().step(step, 0);
  {
    Fixture first(kMeshes[0]);
    first.trainer().stages().initialize(5);
    for (int step = 0; step < 2; ++step) first.trainer().step(step, 0);
    save(first, folder, {2, 32});
  }
  Fixture second(kMeshes[0]);
  ASSERT_TRUE(train::load_state(second.trainer(), folder.path(), -1));
  for (int step = 2; step < 4; ++step) second.trainer().step(step, 0);
  const std::uint64_t expected = whole.weights(), hash = second.weights();
  if (world().rank() == 0) {
    EXPECT_EQ(hash, expected);
  }
}

/// Pipeline schedules and data-parallel degrees that use the same microbatches add them over the same tree.
TEST(State, DeterministicOrderDoesNotDependOnTheDataParallelDegree) {
  std::vector<std::uint64_t> hashes;
  for (const mesh::Degrees& degrees :
       {mesh::Degrees{8, 1, 1, 1, 1}, mesh::Degrees{4, 1, 2, 1, 1}, mesh::Degrees{2, 1, 4, 1, 1}}) {
    Fixture fixture(degrees, false, /*tied=*/false);
    fixture.trainer().stages().initialize(5);
    for (int step = 0; step < 2; ++step) fixture.trainer().step(step, 0);
    hashes.push_back(fixture.weights());
  }
  if (world().rank() != 0) return;
  EXPECT_EQ(hashes[0], hashes[1]);
  EXPECT_EQ(hashes[1], hashes[2]);
}

/// Weights of all schedules on several meshes, after as many steps as it takes for a wrong bit to spread.
TEST(State, SchedulesGiveTheSameBits) {
  using Pipelines = std::vector<std::pair<std::string, int>>;  // schedule and ranks
  const Pipelines untied{{"1F1B", 4},
                         {"GPipe", 4},
                         {"1F1B", 2},
                         {"ZBH1", 4},
                         {"LoopedBFS", 2},
                         {"Interleaved1F1B", 2},
                         {"InterleavedZeroBubble", 4},
                         {"ZBVZeroBubble", 4},
                         {"DualPipeV", 2}};
  const Pipelines tied_ones{{"1F1B", 4}, {"ZBVZeroBubble", 2}, {"DualPipeV", 2}, {"Interleaved1F1B", 4}};
  for (const bool tied : {false, true}) {
    std::uint64_t expected = 0;
    for (const auto& [schedule, pp] : tied ? tied_ones : untied) {
      Fixture fixture({pp, 1, 8 / pp, 1, 1}, false, tied, schedule);
      fixture.trainer().stages().initialize(5);
      for (int step = 0; step < 20; ++step) fixture.trainer().step(step, 0);
      const std::uint64_t hash = fixture.weights();
      if (world().rank() != 0) continue;
      if (expected == 0) expected = hash;
      EXPECT_EQ(hash, expected) << schedule << " on " << pp << " pipeline ranks" << (tied ? ", tied" : "");
    }
  }
}

/// Another number of microbatches in each step: the same batches, so the same losses and norms but for rounding.
TEST(State, MicrobatchesMayChangeEachStep) {
  std::vector<train::StepOutcome> steady, changing;
  for (auto* outcomes : {&steady, &changing}) {
    Fixture fixture({4, 1, 2, 1, 1}, false, true, "ZBVZeroBubble");
    fixture.trainer().stages().initialize(5);
    for (int step = 0; step < 4; ++step) {
      if (outcomes == &changing) fixture.trainer().set_microbatch_rows(std::int64_t{1} << step);
      outcomes->push_back(fixture.trainer().step(step, 0));
    }
    EXPECT_THROW(fixture.trainer().set_microbatch_rows(3), Error);
  }
  for (std::size_t step = 0; step < steady.size(); ++step) {
    EXPECT_NEAR(changing[step].loss, steady[step].loss, 1e-5 * steady[step].loss);
    EXPECT_NEAR(changing[step].grad_norm, steady[step].grad_norm, 1e-5 * steady[step].grad_norm);
  }
}

/// Several stages on a rank are saved and loaded like one, and an interrupted run goes on with the same bits.
TEST(State, StagesOfARankResume) {
  const SharedFolder folder;
  const mesh::Degrees degrees{4, 1, 2, 1, 1};
  Fixture whole(degrees, false, true, "ZBVZeroBubble");
  whole.trainer().stages().initialize(5);
  for (int step = 0; step < 2; ++step) whole.trainer().step(step, 0);
  save(whole, folder, {2, 32});
  for (int step = 2; step < 4; ++step) whole.trainer().step(step, 0);
  Fixture second(degrees, false, true, "Interleaved1F1B");
  ASSERT_TRUE(train::load_state(second.trainer(), folder.path(), -1));
  for (int step = 2; step < 4; ++step) second.trainer().step(step, 0);
  const std::uint64_t expected = whole.weights(), moments = whole.moments(), hash = second.weights(),
                      others = second.moments();
  if (world().rank() != 0) return;
  EXPECT_EQ(hash, expected);
  EXPECT_EQ(others, moments);
}

}  // namespace
}  // namespace tessera::test
