// SPDX-License-Identifier: Apache-2.0
// What sharding policies cost: the gathers and bytes that theory gives, exactly; and what freezing
// leaves alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>

#include "mpi/comm/mpi_main.hpp"
#include "mpi/train/place.hpp"
#include "mpi/train/tiny_model.hpp"
#include "support/planned.hpp"
#include "tessera/comm/hooks.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::test {
namespace {

/// One step of a job of one microbatch a rank and pass; what it gathered.
struct Costs {
  std::int64_t gathers = 0, bytes = 0, kept = 0;
};

class Policy : public testing::Test {
 protected:
  Policy() : place_(world()), model_(tiny_model(false, at::kFloat, 8, place_.device)) {
    job_ = tiny_job("float32");
    job_.training.global_batch_size = 16;
    job_.training.local_batch_size = 16 / world().size() / kMicrobatches;
  }

  train::Trainer& trainer(std::int64_t budget = 0) {
    mesh::Degrees degrees{1, 1, world().size(), 1, 1};
    degrees.ep = ep_;
    const mesh::Layout layout = mesh::Layout::resolve(degrees, world().size());
    trainer_.reset();
    mesh_.emplace(world(), layout, place_.backend);
    plan_ = planned(job_, model_, layout);
    trainer_.emplace(plan_, model_, *mesh_, source_, place_.device);
    trainer_->stages().set_reshard_budget(budget);
    trainer_->stages().initialize(7);
    return *trainer_;
  }

  Costs costs_of(const std::string& policy, std::int64_t budget = 0) {
    job_.parallelism.fsdp_reshard_after_forward = policy;
    train::Trainer& t = trainer(budget);
    t.step();
    const parallel::GatherCount count = t.stages().gather_count();
    return {count.gathers, count.bytes, t.stages().kept_bytes()};
  }

  /// Bytes of all gathered weights: whole parameters, each padded to ranks x 32 elements.
  std::int64_t weight_bytes(std::size_t first = 0) {
    std::int64_t bytes = 0;
    const auto groups = trainer_->stages().groups();
    for (std::size_t i = first; i < groups.size(); ++i) bytes += groups[i]->gathered_bytes();
    return bytes;
  }

  static constexpr std::int64_t kMicrobatches = 2, kUnits = 8;
  Place place_;
  model::Model model_;
  int ep_ = 1;
  UnevenSource source_;
  config::JobConfig job_;
  plan::JobPlan plan_;
  std::optional<mesh::DeviceMesh> mesh_;
  std::optional<train::Trainer> trainer_;
};

TEST_F(Policy, GathersWhatTheorySays) {
  const std::int64_t ranks = world().size();
  const auto received = [&](std::int64_t bytes) { return bytes / ranks * (ranks - 1); };

  const Costs never = costs_of("never");
  const std::int64_t all = weight_bytes(),
                     last = trainer_->stages().groups().back()->gathered_bytes();
  EXPECT_EQ(never.gathers, kUnits);
  EXPECT_EQ(never.bytes, received(all));
  EXPECT_EQ(never.kept, all);

  const Costs always = costs_of("always");
  EXPECT_EQ(always.gathers, 2 * kMicrobatches * kUnits);
  EXPECT_EQ(always.bytes, 2 * kMicrobatches * received(all));
  EXPECT_EQ(always.kept, 0);

  for (const char* policy : {"default", "last_layer"}) {
    const Costs costs = costs_of(policy);
    EXPECT_EQ(costs.gathers, 2 * kMicrobatches * (kUnits - 1) + 1) << policy;
    EXPECT_EQ(costs.bytes, 2 * kMicrobatches * received(all - last) + received(last)) << policy;
    EXPECT_EQ(costs.kept, last) << policy;
  }

  const Costs automatic = costs_of("auto", all);
  EXPECT_EQ(automatic.bytes, never.bytes);
  EXPECT_EQ(costs_of("auto", 0).bytes, always.bytes);
}

/// The calls of this rank, in their order.
class Calls final : public comm::Hook {
 public:
  void before(const comm::HookedCall& call) override {
    const std::lock_guard lock(mutex_);
    calls_.push_back(call.info.call);
  }
  std::int64_t gathers_before_the_first_reduction() const {
    return std::count(calls_.begin(), std::ranges::find(calls_, comm::Call::reduce_scatter),
                      comm::Call::all_gather);
  }

 private:
  std::mutex mutex_;
  std::vector<comm::Call> calls_;
};

/// All units in forward; in backward the last one is there, and those before it are on their way.
TEST_F(Policy, GathersAsFarAheadAsAskedFor) {
  for (const int ahead : {0, 1, 3}) {
    job_.parallelism.fsdp_prefetch_units = ahead;
    train::Trainer& t = trainer();
    const auto calls = std::make_shared<Calls>();
    comm::add_hook(calls);
    t.compute();
    comm::remove_hook(calls);
    EXPECT_EQ(calls->gathers_before_the_first_reduction(), kUnits + ahead);
    EXPECT_EQ(t.stages().gather_count().gathers, 2 * kMicrobatches * (kUnits - 1) + 1);
  }
}

TEST_F(Policy, NeighboursKeepAPart) {
  const std::int64_t ranks = world().size(), k = 2;
  const Costs costs = costs_of("2");
  const std::int64_t all = weight_bytes();
  EXPECT_EQ(costs.gathers, 2 * kMicrobatches * kUnits);
  EXPECT_EQ(costs.bytes, all / ranks * (ranks - 1) + (2 * kMicrobatches - 1) * all / k * (k - 1));
  EXPECT_EQ(costs.kept, all / k);
}

/// Of 4 ranks, 2 neighbours hold different experts, so that each keeps all of its own.
TEST_F(Policy, NeighboursKeepTheirExperts) {
  model_ = tiny_family("mixtral", at::kFloat, place_.device);
  ep_ = 2;
  const std::int64_t ranks = world().size(), k = 2, sharers = ranks / ep_;
  const Costs costs = costs_of("2");
  std::int64_t dense = 0, experts = 0, dense_groups = 0, expert_groups = 0;
  for (const parallel::ShardGroup* group : trainer_->stages().groups()) {
    (parallel::has_experts(*group) ? experts : dense) += group->gathered_bytes();
    (parallel::has_experts(*group) ? expert_groups : dense_groups) += 1;
  }
  ASSERT_GT(expert_groups, 0);
  EXPECT_EQ(costs.gathers, 2 * kMicrobatches * dense_groups + expert_groups);
  EXPECT_EQ(costs.bytes, dense / ranks * (ranks - 1) +
                             (2 * kMicrobatches - 1) * dense / k * (k - 1) +
                             experts / sharers * (sharers - 1));
  EXPECT_EQ(costs.kept, dense / k + experts);
}

TEST_F(Policy, FrozenParametersStayAndTheRestTrains) {
  job_.training.freeze = {"tok_embeddings", "layers\\.2\\.", "norm\\.weight$"};
  train::Trainer& t = trainer();
  std::vector<at::Tensor> before;
  for (const auto* param : t.stages().params()) before.push_back(param->master.clone());
  t.step();  // warms up from nothing: its learning rate is 0
  t.step();
  std::size_t i = 0, frozen = 0;
  for (const auto* param : t.stages().params()) {
    const std::string& name = param->spec->fqn;
    const bool fixed =
        name.starts_with("tok_") || name.starts_with("layers.2.") || name.ends_with("norm.weight");
    EXPECT_EQ(param->gradient.defined(), !fixed) << name;
    if (param->master.numel() > 0) {
      EXPECT_EQ(at::equal(param->master, before[i]), fixed) << name;
    }
    frozen += fixed;
    ++i;
  }
  EXPECT_EQ(frozen, 1u + 9u + 2 * 5u + 1u);
  EXPECT_EQ(t.optimizer_states().size(), t.stages().params().size() - frozen);
}

TEST_F(Policy, ShardedAccumulationReducesEachMicrobatch) {
  const auto reductions = [&](const char* how) {
    job_.parallelism.fsdp_gradient_accumulation = how;
    train::Trainer& t = trainer();
    const std::int64_t before =
        mesh_->along({mesh::Axis::dp_shard, mesh::Axis::cp}).traffic().calls;
    t.compute();
    return mesh_->along({mesh::Axis::dp_shard, mesh::Axis::cp}).traffic().calls - before -
           t.stages().gather_count().gathers;
  };
  EXPECT_EQ(reductions("unsharded"), kUnits);
  EXPECT_EQ(reductions("default"), kMicrobatches * kUnits) << "as FSDP2";
  job_.debug.deterministic = true;
  EXPECT_EQ(reductions("default"), kUnits) << "over ranks behind microbatches";
  job_.debug.deterministic = false;
  EXPECT_EQ(reductions("sharded"), kMicrobatches * kUnits);
}

TEST_F(Policy, MemoryIsCountedByKind) {
  job_.parallelism.fsdp_reshard_after_forward = "never";
  job_.parallelism.fsdp_gradient_accumulation = "unsharded";
  train::Trainer& t = trainer();
  std::int64_t shards = 0, gathered = 0;
  for (const parallel::ShardGroup* group : t.stages().groups()) {
    shards += static_cast<std::int64_t>(group->flat_master().nbytes());
    gathered += group->gathered_bytes();
  }
  const std::int64_t accumulators = world().size() * shards, moments = 2 * shards;
  const parallel::MemoryKinds before = t.known_memory();
  EXPECT_EQ(before.weights, shards);
  EXPECT_EQ(before.gradients, shards);
  EXPECT_EQ(before.moments, moments);
  EXPECT_EQ(before.gathered + before.communication, 0);

  t.compute();
  EXPECT_EQ(t.known_memory().gathered, gathered) << "never: until the step ends";
  EXPECT_EQ(t.known_memory().gradients, shards);
  EXPECT_EQ(t.memory_peak().kinds().total(), 0) << "nobody watched";
  t.stages().end_step();

  t.memory_peak().watch(true);
  t.step();
  const parallel::MemoryKinds peak = t.memory_peak().kinds();
  EXPECT_EQ(peak.state() - peak.gradients, shards + moments);
  EXPECT_GT(peak.gathered, gathered / 2);
  EXPECT_GT(peak.gradients, shards + accumulators / 2)
      << "those of the first microbatch wait for the second";
  EXPECT_LT(peak.gradients, shards + 2 * accumulators);
  EXPECT_GT(peak.activations, 0);
  EXPECT_LT(peak.activations, 30 << 20) << "tables of LibTorch and MPI do not count";
}

/// What is kept back for a step's gradients and communication is enough, and not far too much.
TEST_F(Policy, ScratchIsForeseen) {
  for (const char* adding : {"unsharded", "sharded"})
    for (const char* reshard : {"always", "never"}) {
      job_.parallelism.fsdp_gradient_accumulation = adding;
      job_.parallelism.fsdp_reshard_after_forward = reshard;
      train::Trainer& t = trainer();
      const std::int64_t shards = t.known_memory().gradients,
                         foreseen = t.stages().scratch_bytes(kMicrobatches);
      t.memory_peak().watch(true);
      t.step();
      const parallel::MemoryKinds& peak = t.memory_peak().kinds();
      const std::int64_t taken = peak.gradients - shards + peak.communication;
      EXPECT_LE(taken, foreseen) << adding << " " << reshard;
      EXPECT_GE(8 * taken, foreseen) << adding << " " << reshard;
    }
}

}  // namespace
}  // namespace tessera::test
