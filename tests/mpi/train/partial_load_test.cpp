// SPDX-License-Identifier: Apache-2.0
// Checkpoints of which a run takes a part: what is left out, what does not fit, and where it then
// stands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "mpi/train/state_fixture.hpp"
#include "support/error_of.hpp"
#include "tessera/base/error.hpp"
#include "tessera/train/model_weights.hpp"

namespace tessera::test {
namespace {

using plan::LoadChoice;
using plan::Mismatch;
using testing::HasSubstr;
using Tensors = std::map<std::string, at::Tensor>;  // whole, by name; on rank 0

mesh::Degrees pipeline() { return {2, 1, world().size() / 2, 1, 1}; }
mesh::Degrees tensor_parallel() { return {1, 1, world().size() / 2, 1, 2}; }

template <class Pick>
Tensors wholes(Fixture& fixture, Pick pick) {
  Tensors tensors;
  train::for_each_whole(fixture.trainer().stages().params(), fixture.trainer().model(),
                        fixture.mesh().control(), pick,
                        [&](const model::ParamSpec& spec, const at::Tensor& whole) {
                          tensors[spec.fqn] = whole.clone();
                        });
  return tensors;
}
Tensors weights_of(Fixture& fixture) {
  return wholes(fixture, [](const parallel::ShardedParam& param) { return param.master; });
}
Tensors moments_of(Fixture& fixture) {
  return wholes(fixture, [&](const parallel::ShardedParam& param) {
    for (auto& state : fixture.trainer().optimizer_states())
      if (state.param.is_same(param.master)) return state.exp_avg;
    return at::Tensor();
  });
}

/// Values of its own, trained for three steps and saved.
struct Saved {
  explicit Saved(const Case& which) : fixture(which) {
    fixture.trainer().stages().initialize(5);
    for (int step = 0; step < 3; ++step) fixture.trainer().step();
    save(fixture, folder.path());
  }
  SharedFolder folder;
  Fixture fixture;
};

/// With other values, from which a load differs.
std::unique_ptr<Fixture> fresh(const Case& which) {
  auto fixture = std::make_unique<Fixture>(which);
  fixture->trainer().stages().initialize(9);
  return fixture;
}

LoadChoice excluding(std::vector<std::string> what, Fixture& fixture) {
  config::Checkpoint options;
  options.exclude_from_loading = std::move(what);
  return LoadChoice::of(options, fixture.trainer().model());
}

/// Each is that of `there` or, where `excluded` says so, that of `here`.
template <class Excluded>
void expect_mixed(const Tensors& loaded, const Tensors& there, const Tensors& here,
                  Excluded excluded) {
  for (const auto& [name, values] : loaded) {
    EXPECT_TRUE(values.equal((excluded(name) ? here : there).at(name))) << name;
    if (values.dim() > 1 && there.contains(name)) {
      EXPECT_FALSE(there.at(name).equal(here.at(name))) << name << " shows nothing";
    }
  }
}

std::string refusal(Fixture& fixture, const fs::path& folder, const LoadChoice& choice) {
  return error_if_any(ExitCode::usage,
                      [&] { train::load_state(fixture.trainer(), folder, choice); });
}

TEST(PartialLoad, WhatIsExcludedKeepsItsValues) {
  Saved saved({.degrees = pipeline(), .tied = false});
  const auto loaded = fresh({.degrees = tensor_parallel(), .tied = false});
  const Tensors before = weights_of(*loaded), idle = moments_of(*loaded);
  const LoadChoice choice = excluding({"^output", "layers[.]3[.]attention"}, *loaded);
  ASSERT_TRUE(train::load_state(loaded->trainer(), saved.folder.path(), choice));
  const auto excluded = [&](const std::string& name) { return choice.excludes(name); };
  expect_mixed(weights_of(*loaded), weights_of(saved.fixture), before, excluded);
  expect_mixed(moments_of(*loaded), moments_of(saved.fixture), idle, excluded);
}

TEST(PartialLoad, WordsSayWhereTheRunStands) {
  Saved saved({.degrees = pipeline()});
  const auto loaded = fresh({.degrees = tensor_parallel()});
  train::Trainer& trainer = loaded->trainer();
  const Tensors idle = moments_of(*loaded), weights = weights_of(saved.fixture);
  const auto load = [&](std::vector<std::string> what) {
    EXPECT_TRUE(
        train::load_state(trainer, saved.folder.path(), excluding(std::move(what), *loaded)));
  };
  load({"optimizer"});
  EXPECT_EQ(trainer.state().optimizer_steps, 0);
  for (const auto& [name, values] : moments_of(*loaded))
    EXPECT_TRUE(values.equal(idle.at(name))) << name;
  for (const auto& [name, values] : weights_of(*loaded))
    EXPECT_TRUE(values.equal(weights.at(name))) << name;
  EXPECT_EQ(trainer.state().schedule_start, 0);
  EXPECT_EQ(trainer.first_sample(3), 48);
  load({"lr_scheduler"});
  EXPECT_EQ(trainer.state().optimizer_steps, 3);
  EXPECT_EQ(trainer.state().schedule_start, 3);
  EXPECT_EQ(trainer.first_sample(3), 48);
  load({"dataloader"});
  EXPECT_EQ(trainer.state().schedule_start, 0);
  EXPECT_EQ(trainer.first_sample(3), 0);
}

/// A schedule that began anew is where it was when the run goes on.
TEST(PartialLoad, ASchedulesStartIsSaved) {
  Saved saved({.degrees = pipeline()});
  const auto first = fresh({.degrees = pipeline()});
  ASSERT_TRUE(train::load_state(first->trainer(), saved.folder.path(),
                                excluding({"lr_scheduler"}, *first)));
  const double lr = first->trainer().step().lr;
  EXPECT_NE(lr, saved.fixture.trainer().step().lr);
  save(*first, saved.folder.path());
  const auto second = fresh({.degrees = tensor_parallel()});
  ASSERT_TRUE(train::load_state(second->trainer(), saved.folder.path()));
  EXPECT_EQ(second->trainer().state().schedule_start, 3);
  EXPECT_EQ(second->trainer().step().lr, first->trainer().step().lr);
}

/// Of a checkpoint that left out the same when its run began, all is loaded; if it is damaged, none
/// of an older one that would leave damaged values where they are.
TEST(PartialLoad, IsDoneOnce) {
  Saved base({.degrees = pipeline()});
  const auto own = fresh({.degrees = pipeline()});
  config::Checkpoint without_optimizer;
  without_optimizer.exclude_from_loading = {"optimizer"};
  plan::JobPlan plan = own->plan();
  plan.load.own = LoadChoice::of_own(without_optimizer, own->trainer().model());
  const LoadChoice& choice = plan.load.own;
  ASSERT_TRUE(train::load_state(own->trainer(), base.folder.path(), choice));
  EXPECT_EQ(own->trainer().state().optimizer_steps, 0);
  own->trainer().step();
  const auto saved = save(*own, plan, base.folder.path());
  const auto again = fresh({.degrees = tensor_parallel()});
  ASSERT_TRUE(train::load_state(again->trainer(), base.folder.path(), choice));
  EXPECT_EQ(again->trainer().state().optimizer_steps, 1);
  const Tensors there = moments_of(*own);
  for (const auto& [name, values] : moments_of(*again))
    EXPECT_TRUE(values.equal(there.at(name))) << name;
  world().control().barrier();
  if (world().rank() == 0) {
    for (const auto& entry : fs::directory_iterator(saved.folder)) {
      if (!entry.path().filename().string().starts_with("shard-")) continue;
      std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(-1, std::ios::end);  // the last byte of a shard is a tensor's
      file.put('\x55');
    }
  }
  world().control().barrier();
  try {
    train::load_state(again->trainer(), base.folder.path(), choice);
    ADD_FAILURE() << "values of the damaged checkpoint may have stayed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::checkpoint);
    EXPECT_THAT(error.what(), HasSubstr("step-00000003 would be loaded without optimizer/"));
  }
}

TEST(PartialLoad, AnotherTyingIsRefusedInWords) {
  for (const bool tied : {false, true}) {
    Saved saved({.degrees = pipeline(), .tied = tied});
    const auto loaded = fresh({.degrees = tensor_parallel(), .tied = !tied});
    const Tensors before = weights_of(*loaded);
    LoadChoice choice;
    for (const Mismatch policy : {Mismatch::strict, Mismatch::warn, Mismatch::ignore}) {
      choice.mismatch = policy;
      const std::string why = refusal(*loaded, saved.folder.path(), choice);
      EXPECT_THAT(
          why,
          HasSubstr(tied ? "is tied to the embedding, and in tiny it has weights of its own"
                         : "has weights of its own, and in tiny tied it is tied to the embedding"));
      EXPECT_THAT(why, HasSubstr("checkpoint.exclude_from_loading = [\"output.weight\"]"));
    }
    const LoadChoice without = excluding({"output[.]weight"}, *loaded);
    ASSERT_TRUE(train::load_state(loaded->trainer(), saved.folder.path(), without));
    expect_mixed(weights_of(*loaded), weights_of(saved.fixture), before,
                 [](const std::string& name) { return name == "output.weight"; });
  }
}

/// A Llama of six layers in a Qwen of four, whose keys and values have other shapes and whose norms
/// are missing.
TEST(PartialLoad, WhatDoesNotFitFollowsThePolicy) {
  Saved saved({.degrees = pipeline()});
  const auto loaded = fresh({.degrees = tensor_parallel(), .family = "qwen3"});
  const Tensors before = weights_of(*loaded), there = weights_of(saved.fixture);
  LoadChoice choice;
  const std::string why = refusal(*loaded, saved.folder.path(), choice);
  for (const char* line :
       {"extra    model/layers.4.", "differs  model/layers.0.attention.wk.weight",
        "checkpoint.load_mismatch", " more"})
    EXPECT_THAT(why, HasSubstr(line));
  for (const auto& [name, values] : weights_of(*loaded))
    EXPECT_TRUE(values.equal(before.at(name))) << name;
  choice.mismatch = Mismatch::ignore;
  ASSERT_TRUE(train::load_state(loaded->trainer(), saved.folder.path(), choice));
  std::size_t kept = 0;
  const Tensors after = weights_of(*loaded);
  for (const auto& [name, values] : after) {
    const bool fits = there.contains(name) && there.at(name).sizes() == values.sizes();
    EXPECT_TRUE(values.equal((fits ? there : before).at(name))) << name;
    kept += !fits;
  }
  if (world().rank() == 0) {
    EXPECT_EQ(kept, 4u * 4) << "wk, wv, q_norm, k_norm of each layer";
  }
}

TEST(PartialLoad, AStartFromAnotherRunTakesItsModelAlone) {
  Saved saved({.degrees = pipeline(), .tied = false});
  const auto loaded = fresh({.degrees = tensor_parallel(), .tied = false});
  const Tensors before = weights_of(*loaded), idle = moments_of(*loaded);
  const LoadChoice choice = excluding({"^output"}, *loaded);
  train::load_model(
      {loaded->trainer().stages().holdings(), loaded->trainer().model(), loaded->mesh()},
      saved.folder.path(), choice);
  expect_mixed(weights_of(*loaded), weights_of(saved.fixture), before,
               [](const std::string& name) { return name == "output.weight"; });
  for (const auto& [name, values] : moments_of(*loaded))
    EXPECT_TRUE(values.equal(idle.at(name))) << name;
  EXPECT_EQ(loaded->trainer().state().optimizer_steps, 0);
}

}  // namespace
}  // namespace tessera::test
