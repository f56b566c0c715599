// SPDX-License-Identifier: Apache-2.0
#include "tessera/checkpoint/checkpoint_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>

#include "checkpoint_fixture.hpp"
#include "tessera/checkpoint/saver.hpp"

namespace tessera::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

TEST_F(Checkpoint, ComesBackBitForBit) {
  const SaveResult saved = save_step(1000);
  EXPECT_EQ(saved.folder, folder_ / "step-00001000");
  EXPECT_THAT(names(), testing::ElementsAre("LATEST", "step-00001000"));
  EXPECT_EQ(content_of(folder_ / "LATEST"), "step-00001000\n");
  EXPECT_EQ(describe(verify(saved.folder, true)), "");
  EXPECT_THROW(verify(saved.folder, true, 5, 2), ContractViolation);

  const auto opened = open_newest(*control_, folder_.path(), log_);
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->step(), 1000);
  EXPECT_EQ(opened->extra(), R"({"data_position":4711,"seed":1})");
  EXPECT_EQ(opened->mesh(), "pp1.r1.s1.cp1.tp1");
  EXPECT_THAT(opened->config_toml(), HasSubstr("llama3"));
  EXPECT_EQ(opened->tensors().size(), sample_tensors().size());
  EXPECT_EQ(opened->tensors()[1].name, "model/layers.2.norm.weight");  // 2 before 10
  const auto blank = hold(sample_tensors(), {}, 0, false);
  load(*control_, *opened, views_of(blank));
  EXPECT_TRUE(all_right(blank));
  auto nowhere = views_of(blank);
  nowhere.front().data = nullptr;
  EXPECT_THROW(load(*control_, *opened, nowhere), Error);
}

/// A saver remembers where things lay in its last file; what it saves next may be something else.
void wait_for_the_next_second() {
  for (const std::time_t now = std::time(nullptr); std::time(nullptr) == now;) ::usleep(1000);
}

TEST_F(Checkpoint, EachSaveIsLaidOutForItsOwnBoxes) {
  Saver saver(*control_);
  const std::vector<SampleTensor> tensors{{"model/a", DType::f32, {6, 4}},
                                          {"model/b", DType::bf16, {3}}};
  std::vector<std::vector<SampleTensor>> states{tensors, tensors};
  const auto then = [&](auto change) { states.push_back(states.back()), change(states.back()); };
  then([](auto& changed) { changed[1].dtype = DType::f16; });
  then([](auto& changed) { changed[0].name = "model/c"; });
  then([](auto& changed) { changed[0].shape = {4, 6}; });
  then([](auto& changed) { changed.push_back({"model/d", DType::f64, {}}); });
  std::vector<std::string> shards;
  for (std::size_t step = 0; step < states.size(); ++step) {
    const auto held = hold(states[step], {}, 0, true);
    const SaveResult saved =
        saver.save(options(), {static_cast<std::int64_t>(step)}, views_of(held));
    const CheckpointReader opened = open(*control_, saved.folder);
    EXPECT_EQ(describe(verify(opened.folder(), true)), "");
    const auto blank = hold(states[step], {}, 0, false);
    load(*control_, opened, views_of(blank));
    EXPECT_TRUE(all_right(blank)) << step;
    shards.push_back(content_of(saved.folder / "shard-pp0.r0.s0.cp0.tp0.h5"));
    if (step == 0) wait_for_the_next_second();  // no file says when it was made
    Saver other(*control_);
    SaveOptions elsewhere = options();
    elsewhere.folder = folder_ / "other";
    EXPECT_EQ(
        content_of(other.save(elsewhere, {static_cast<std::int64_t>(step)}, views_of(held)).folder /
                   "shard-pp0.r0.s0.cp0.tp0.h5"),
        shards.back())
        << "not what a saver without a memory writes in step " << step;
  }
  EXPECT_EQ(shards[0], shards[1]);
}

TEST_F(Checkpoint, ConvertsFloatingTypesAndReadsBoxes) {
  const float values[6] = {0, 1.0039f, -2, 3, 4, 5};
  const TensorSlice slice{"optimizer/exp_avg/w", DType::f32, {2, 3}, {{0, 0}, {2, 3}}};
  const SliceView view{slice, const_cast<float*>(values)};
  save(*control_, options(), {1}, {&view, 1});
  const CheckpointReader opened = open(*control_, folder_ / "step-00000001");
  std::vector<double> column(2);
  opened.read({slice.name, DType::f64, {2, 3}, {{0, 1}, {2, 1}}}, column.data());
  EXPECT_EQ(column, (std::vector<double>{1.0039f, 4}));
  std::uint16_t bf16 = 0;
  opened.read({slice.name, DType::bf16, {2, 3}, {{0, 1}, {1, 1}}}, &bf16);
  EXPECT_EQ(bf16, f32_to_bf16(1.0039f));
}

TEST_F(Checkpoint, MissingAndExtraTensorsFollowThePolicy) {
  save_step(1);
  const CheckpointReader opened = open(*control_, folder_ / "step-00000001");
  auto wanted = hold(sample_tensors(), {}, 0, false);
  wanted.erase(wanted.begin());
  wanted.emplace_back(TensorSlice{"model/new.weight", DType::f32, {2}, {{0}, {2}}}, true);
  const std::string why =
      message_of([&] { load(*control_, opened, views_of(wanted)); }, ExitCode::usage);
  EXPECT_THAT(why, HasSubstr("extra    model/tok_embeddings.weight  f32 [37, 16]"));
  EXPECT_THAT(why, HasSubstr("missing  model/new.weight  f32 [2]"));
  load(*control_, opened, views_of(wanted), {Policy::warn, Policy::warn, log_});
  EXPECT_TRUE(all_right(wanted));  // the missing one kept what it had
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_THAT(lines_[0], HasSubstr("missing  model/new.weight"));
  load(*control_, opened, views_of(wanted), {Policy::ignore, Policy::ignore, log_});
  EXPECT_EQ(lines_.size(), 1u);
}

TEST_F(Checkpoint, AnotherShapeOrFamilyIsRefused) {
  save_step(1);
  const CheckpointReader opened = open(*control_, folder_ / "step-00000001");
  const LoadOptions lax{Policy::ignore, Policy::ignore, {}};
  std::vector<std::byte> memory(10000);
  const SliceView other{{"model/tok_embeddings.weight", DType::f32, {16, 37}, {{0, 0}, {16, 37}}},
                        memory.data()};
  EXPECT_THAT(message_of(
                  [&] {
                    load(*control_, opened, {&other, 1}, lax);
                  },
                  ExitCode::usage),
              HasSubstr("stored f32 [37, 16], wanted f32 [16, 37]"));
  const SliceView integers{{"model/step_scale", DType::i64, {}, {{}, {}}}, memory.data()};
  EXPECT_THAT(message_of(
                  [&] {
                    load(*control_, opened, {&integers, 1}, lax);
                  },
                  ExitCode::usage),
              HasSubstr("differs"));
  EXPECT_THAT(message_of([&] { opened.read(other.slice, memory.data()); }, ExitCode::usage),
              HasSubstr("[37, 16]"));
}

TEST_F(Checkpoint, WhatDiffersFollowsThePolicyToo) {
  save_step(1);
  const CheckpointReader opened = open(*control_, folder_ / "step-00000001");
  auto wanted = hold(sample_tensors(), {}, 0, false);
  wanted.erase(wanted.begin());
  const TensorSlice taller{"model/tok_embeddings.weight", DType::f32, {40, 16}, {{0, 0}, {40, 16}}};
  wanted.emplace_back(taller, true);
  LoadOptions lax{Policy::strict, Policy::strict, log_, Policy::warn};
  load(*control_, opened, views_of(wanted), lax);
  EXPECT_TRUE(all_right(wanted));  // the taller one kept what it had, the others came
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_THAT(
      lines_[0],
      HasSubstr("differs  model/tok_embeddings.weight  stored f32 [37, 16], wanted f32 [40, 16]"));
  lax.differing = Policy::ignore;
  load(*control_, opened, views_of(wanted), lax);
  EXPECT_EQ(lines_.size(), 1u);
}

TEST_F(Checkpoint, WhatIsLeftOutIsNeitherLoadedNorMissed) {
  save_step(1);
  const CheckpointReader opened = open(*control_, folder_ / "step-00000001");
  auto wanted = hold(sample_tensors(), {}, 0, false);
  std::erase_if(wanted, [](const Held& held) {
    return held.view().slice.name == "optimizer/steps";
  });                                                                                    // extra
  wanted.emplace_back(TensorSlice{"optimizer/new", DType::f32, {2}, {{0}, {2}}}, true);  // missing
  LoadOptions options;
  options.leave_out = [](std::string_view name) { return name.starts_with("optimizer/"); };
  load(*control_, opened, views_of(wanted), options);
  for (const Held& held : wanted)
    EXPECT_EQ(held.is_right(), !held.view().slice.name.starts_with("optimizer/exp_avg"))
        << held.view().slice.name;
}

TEST_F(Checkpoint, MayBeRefusedBeforeItIsLoaded) {
  save_step(1);
  save_step(2);
  auto wanted = hold(sample_tensors(), {}, 0, false);
  const auto refuse = [](const CheckpointReader& opened) {
    require(opened.step() != 2, ExitCode::usage, "not the second");
  };
  EXPECT_EQ(message_of(
                [&] {
                  load_newest(*control_, folder_.path(), views_of(wanted), {}, {kAnyStep, refuse});
                },
                ExitCode::usage),
            "not the second");
  LoadOptions options;
  options.accept = [](const WeightSource& source) {
    require(source.find("model/absent"), ExitCode::usage, "{} is refused", source.description());
  };
  EXPECT_THAT(message_of([&] { load_newest(*control_, folder_.path(), views_of(wanted), options); },
                         ExitCode::usage),
              HasSubstr("step-00000002 is refused"));
  EXPECT_FALSE(wanted.front().is_right());
}

TEST_F(Checkpoint, ViewsThatDoNotMakeUpATensorAreRefused) {
  float value = 1;
  const SliceView half{{"model/w", DType::f32, {2}, {{0}, {1}}}, &value};
  EXPECT_THAT(message_of(
                  [&] {
                    save(*control_, options(), {1}, {&half, 1});
                  },
                  ExitCode::usage),
              HasSubstr("hold 1 elements where 2 were expected"));
  for (const char* name : {"", "/x", "a//b", "a/../b", "tessera/x", "a#1", "a b"}) {
    const SliceView bad{{name, DType::f32, {1}, {{0}, {1}}}, &value};
    EXPECT_THAT(message_of(
                    [&] {
                      save(*control_, options(), {1}, {&bad, 1});
                    },
                    ExitCode::usage),
                HasSubstr("cannot name"));
  }
  const SliceView outside{{"model/w", DType::f32, {2}, {{1}, {2}}}, &value};
  EXPECT_THAT(message_of(
                  [&] {
                    save(*control_, options(), {1}, {&outside, 1});
                  },
                  ExitCode::usage),
              HasSubstr("leaves"));
  EXPECT_THAT(names(), testing::IsEmpty());
}

}  // namespace
}  // namespace tessera::checkpoint
