// SPDX-License-Identifier: Apache-2.0
// Trainers of tiny models on any mesh, and the bits of all that a checkpoint keeps of them.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "mpi/comm/mpi_main.hpp"
#include "mpi/train/place.hpp"
#include "mpi/train/tiny_model.hpp"
#include "support/planned.hpp"
#include "support/temporary_folder.hpp"
#include "tessera/mesh/device_mesh.hpp"
#include "tessera/train/arithmetic.hpp"
#include "tessera/train/device_copies.hpp"
#include "tessera/train/trainer.hpp"
#include "tessera/train/training_state.hpp"
#include "tessera/train/whole_tensors.hpp"

namespace tessera::test {

namespace fs = std::filesystem;

struct Case {
  mesh::Degrees degrees = {1, 1, 1, 1, 1};
  bool alone = false;  ///< each rank for itself
  bool tied = true;
  std::string schedule = "1F1B";
  std::string family = {};  ///< of tiny_family(); empty = tiny_model()
  bool async = false;       ///< asynchronous tensor parallel
  std::vector<std::string> cuts = {};
  std::vector<std::string> microbatch_steps = {};
};

/// A trainer on one mesh of the world's ranks.
class Fixture {
 public:
  explicit Fixture(const Case& which)
      : layout_(mesh::Layout::resolve(which.degrees, which.alone ? 1 : world().size())),
        place_(world()),
        resolved_(job(layout_, which)),
        model_(which.family.empty() ? tiny_model(which.tied, at::kFloat, 8, place_.device)
                                    : tiny_family(which.family, at::kFloat, place_.device)),
        plan_(planned(resolved_, model_, layout_)),
        mesh_(which.alone ? std::make_unique<mesh::DeviceMesh>(layout_, mesh::Rank{0})
                          : std::make_unique<mesh::DeviceMesh>(
                                world(), layout_, place_.backend,
                                train::ordered_sums_of(plan_.arithmetic, place_.device))),
        trainer_(plan_, model_, *mesh_, source_, place_.device) {}

  train::Trainer& trainer() { return trainer_; }
  const config::Resolved& resolved() const { return resolved_; }
  const plan::JobPlan& plan() const { return plan_; }
  mesh::DeviceMesh& mesh() { return *mesh_; }
  at::Device device() const { return place_.device; }

  /// FNV-1a over the bits of every whole tensor that `pick` chooses; on rank 0 of the mesh.
  template <class Pick>
  std::uint64_t hash(Pick pick) {
    std::uint64_t hash = kEmptyHash;
    train::for_each_whole(
        trainer_.stages().params(), model_, mesh_->control(), pick,
        [&](const model::ParamSpec&, const at::Tensor& whole) { hash = hash_of(hash, whole); });
    return hash;
  }
  std::uint64_t weights() {
    return hash([](const parallel::ShardedParam& param) { return param.master; });
  }
  std::uint64_t moments() {
    return hash([this](const parallel::ShardedParam& param) {
      for (auto& state : trainer_.optimizer_states())
        if (state.param.is_same(param.master)) return state.exp_avg + 3 * state.exp_avg_sq;
      return at::Tensor();
    });
  }
  /// Of the buffers, the biases that even experts out; the same on every rank of the world.
  std::uint64_t buffers() {
    std::uint64_t all = 0;
    for (const at::Tensor& buffer : trainer_.stages().holdings().buffers) {
      const auto mine =
          buffer.defined() ? static_cast<std::int64_t>(hash_of(kEmptyHash, buffer) >> 1) : 0;
      const std::int64_t highest = comm::all_reduce_scalar(world().control(), mine, comm::Op::max);
      EXPECT_TRUE(mine == 0 || mine == highest) << "ranks hold different biases";
      all = all * 31 + static_cast<std::uint64_t>(highest);
    }
    return all;
  }

 private:
  static constexpr std::uint64_t kEmptyHash = 0xcbf29ce484222325u;
  static std::uint64_t hash_of(std::uint64_t hash, const at::Tensor& tensor) {
    const at::Tensor values = tensor.cpu().contiguous();
    const auto* bytes = static_cast<const unsigned char*>(values.data_ptr());
    for (std::size_t i = 0; i < values.nbytes(); ++i) hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
  }

  static config::Resolved job(const mesh::Layout& layout, const Case& which) {
    config::Resolved resolved;
    resolved.job = tiny_job("float32");
    resolved.job.training.local_batch_size = 16 / layout.dp_degree();
    resolved.job.parallelism.pipeline_parallel_microbatch_size =
        std::min<std::int64_t>(2, resolved.job.training.local_batch_size);
    resolved.job.debug.deterministic = true;
    resolved.job.parallelism.enable_async_tensor_parallel = which.async;
    resolved.job.parallelism.async_tensor_parallel_chunks = 3;
    resolved.job.training.steps = 20;
    resolved.job.parallelism.pipeline_parallel_schedule = which.schedule;
    resolved.job.parallelism.pipeline_parallel_split_points = which.cuts;
    resolved.job.parallelism.pipeline_parallel_microbatch_steps = which.microbatch_steps;
    return resolved;
  }

  mesh::Layout layout_;
  Place place_;
  config::Resolved resolved_;
  model::Model model_;
  plan::JobPlan plan_;
  std::unique_ptr<mesh::DeviceMesh> mesh_;
  UnevenSource source_;
  train::Trainer trainer_;
};

/// A job with EvenSource on a mesh of the world's ranks, from the initial weights of seed 7.
class EvenTraining {
 public:
  using MakeModel = std::function<model::Model(at::Device)>;

  EvenTraining(const mesh::Degrees& degrees, const config::JobConfig& job,
               const MakeModel& make_model)
      : place_(world()),
        layout_(mesh::Layout::resolve(degrees, world().size())),
        mesh_(world(), layout_, place_.backend),
        model_(make_model(place_.device)),
        plan_(planned(job, model_, layout_)),
        trainer_(plan_, model_, mesh_, source_, place_.device) {
    trainer_.stages().initialize(7);
  }
  train::Trainer& trainer() { return trainer_; }
  parallel::Stages& stages() { return trainer_.stages(); }
  mesh::DeviceMesh& mesh() { return mesh_; }
  const model::Model& model() const { return model_; }

  void save(const fs::path& folder) {
    const auto copies = train::make_device_copies(place_.device);
    checkpoint::Saver saver(mesh_.control(), copies.get());
    train::save_state(saver, trainer_, plan_, folder, trainer_.state());
  }
  void load(const fs::path& folder) {
    ASSERT_TRUE(train::load_state(trainer_, folder, plan::LoadChoice()));
  }

 private:
  Place place_;
  mesh::Layout layout_;
  mesh::DeviceMesh mesh_;
  model::Model model_;
  EvenSource source_;
  plan::JobPlan plan_;
  train::Trainer trainer_;
};

/// A folder of this test's own, the same on all ranks, removed at the end.
class SharedFolder {
 public:
  SharedFolder() : path_(comm::broadcast_string(world().control(), own_.path().string(), 0)) {}
  ~SharedFolder() { world().control().barrier(); }
  const fs::path& path() const { return path_; }

 private:
  TemporaryFolder own_;  ///< rank 0's is the one
  fs::path path_;
};

inline checkpoint::SaveResult save(Fixture& fixture, const plan::JobPlan& plan,
                                   const fs::path& folder) {
  const auto copies = train::make_device_copies(fixture.device());
  checkpoint::Saver saver(fixture.mesh().control(), copies.get());
  return train::save_state(saver, fixture.trainer(), plan, folder, fixture.trainer().state());
}
inline void save(Fixture& fixture, const fs::path& folder) {
  save(fixture, fixture.plan(), folder);
}

inline mesh::Degrees with_experts(mesh::Degrees degrees, int ep, int etp = 1) {
  degrees.ep = ep;
  degrees.etp = etp;
  return degrees;
}

}  // namespace tessera::test
