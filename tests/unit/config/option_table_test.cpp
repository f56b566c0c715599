// SPDX-License-Identifier: Apache-2.0
#include "tessera/config/option_table.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "tessera/config/closest_key.hpp"
#include "tessera/config/document.hpp"
#include "tessera/config/resolve.hpp"

namespace tessera::config {
namespace {

nlohmann::json torchtitan_keys() {
  std::ifstream file(TESSERA_TEST_DATA "/config/torchtitan_keys.json");
  return nlohmann::json::parse(file);
}

nlohmann::json as_json(const Value& value) {
  return std::visit(
      [](const auto& v) -> nlohmann::json {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, std::monostate>)
          return nullptr;
        else
          return v;
      },
      value);
}

TEST(OptionTable, HasEveryKeyOfTorchTitanWithItsDefault) {
  const nlohmann::json keys = torchtitan_keys();
  ASSERT_GT(keys.size(), 140u);
  for (const auto& [key, value] : keys.items()) {
    const Option* option = find_option(key);
    ASSERT_TRUE(option) << key;
    EXPECT_FALSE(option->ours) << key;
    if (key == "debug.seed") continue;  // none there; 42 here, so that a run can be repeated
    if (key == "checkpoint.last_save_model_only")
      continue;  // true there; false here, so that a finished run can go on
    EXPECT_EQ(as_json(default_of(*option)), value) << key;
  }
}

TEST(OptionTable, MarksTesserasOwnKeys) {
  const nlohmann::json keys = torchtitan_keys();
  for (const Option& option : options())
    EXPECT_EQ(option.ours, !keys.contains(std::string(option.key))) << option.key;
}

TEST(OptionTable, IsConsistent) {
  std::set<std::string_view> seen;
  for (const Option& option : options()) {
    EXPECT_TRUE(seen.insert(option.key).second) << option.key;
    EXPECT_FALSE(option.help.empty()) << option.key;
    EXPECT_TRUE(option.under.empty() || find_option(option.under)) << option.key;
    JobConfig job;
    EXPECT_EQ(assign(option, job, default_of(option)), std::nullopt) << option.key;
    for (const auto value : option.allowed)
      EXPECT_EQ(assign(option, job, std::string(value)), std::nullopt) << option.key;
  }
}

TEST(OptionTable, EveryKeyHasAMemberOfItsOwn) {
  for (const Option& option : options()) {
    JobConfig job;
    if (is_boolean(option))
      assign(option, job, !std::get<bool>(default_of(option)));
    else if (type_name(option) == "list of strings")
      assign(option, job, Strings{"x"});
    else
      continue;
    int changed = 0;
    for (const Option& other : options()) changed += get(other, job) != default_of(other);
    EXPECT_EQ(changed, 1) << option.key;
  }
}

TEST(OptionTable, KnowsOtherSpellings) {
  EXPECT_EQ(find_option("parallelism.reshard_after_forward_mode"),
            find_option("parallelism.fsdp_reshard_after_forward"));
  EXPECT_EQ(find_option("quantize.dense.float8.enable"),
            find_option("quantize.linear.float8.enable"));
  EXPECT_TRUE(is_section("quantize.dense.float8"));
  EXPECT_FALSE(find_option("quantize.denser.float8.enable"));
  EXPECT_FALSE(find_option(""));
}

TEST(OptionTable, ReadsSchedulesHoweverTheyAreTyped) {
  for (const char* name : {"interleave_1f1b", "Interleaved1F1B", "INTERLEAVED-1f1b",
                           "interleaved_1F1B", "ScheduleInterleaved1F1B"})
    EXPECT_EQ(canonical_schedule(name), "Interleaved1F1B") << name;
  EXPECT_EQ(canonical_schedule("1f1b"), "1F1B");
  EXPECT_EQ(canonical_schedule("g-pipe"), "GPipe");
  EXPECT_EQ(canonical_schedule("zbv"), "ZBVZeroBubble");
  EXPECT_EQ(canonical_schedule("dual_pipe_v"), "DualPipeV");
  EXPECT_EQ(canonical_schedule("1f2b"), "");
  EXPECT_EQ(canonical_schedule(""), "");
}

TEST(OptionTable, WritesValuesThatReadBack) {
  EXPECT_EQ(to_toml(Value{1.0}), "1.0");
  EXPECT_EQ(to_toml(Value{0.1 + 0.2}), "0.30000000000000004");
  EXPECT_EQ(to_toml(Value{1e300}), "1e+300");
  EXPECT_EQ(to_toml(Value{std::string("a\"b\\\n\x01")}), "\"a\\\"b\\\\\\n\\u0001\"");
  EXPECT_EQ(to_toml(Value{std::vector<Strings>{{"a"}, {}}}), "[[\"a\"], []]");
}

TEST(Documents, NameEveryKey) {
  const std::string table = keys_as_table(), man = keys_as_man_page(), flags = flags_as_words();
  const auto json = nlohmann::json::parse(keys_as_json());
  ASSERT_EQ(json.size(), options().size());
  for (std::size_t i = 0; i < options().size(); ++i) {
    EXPECT_EQ(json[i]["key"], std::string(options()[i].key));
    EXPECT_NE(table.find(options()[i].key), table.npos);
    EXPECT_NE(man.find(options()[i].key), man.npos);
    EXPECT_NE(flags.find(options()[i].key), flags.npos);
  }
  EXPECT_NE(flags.find("--compile.no_enable\n"), flags.npos);
}

TEST(Documents, CanBeCutToASection) {
  const std::string table = keys_as_table("quantize.linear");
  EXPECT_NE(table.find("quantize.linear.float8.enable"), table.npos);
  EXPECT_EQ(table.find("training.steps"), table.npos);
}

TEST(ClosestKey, FindsTheNearest) {
  EXPECT_EQ(closest_key("steps"), "training.steps");
  EXPECT_EQ(closest_key("job.tensor_parallel_degree"), "parallelism.tensor_parallel_degree");
  EXPECT_EQ(closest_key("training.batch_size"), "training.local_batch_size");
  EXPECT_EQ(closest_key("optimizer.learning_rate"), "optimizer.lr");
  EXPECT_EQ(closest_key("learning-rate"), "optimizer.lr");
  EXPECT_EQ(closest_key("training.max_grad_norm"), "training.max_norm");
  EXPECT_EQ(closest_key("fault_tolerance.sync_steps"), std::nullopt);
  EXPECT_EQ(closest_key("paralelism.tensor_paralel_degree"), "parallelism.tensor_parallel_degree");
  EXPECT_EQ(closest_key(std::string(100000, 'x')), std::nullopt);
}

TEST(OptionTable, AutoIsLeftToThePlannerUntilItHasAValue) {
  const Option& degree = *find_option("parallelism.tensor_parallel_degree");
  Resolved resolved;
  EXPECT_EQ(assign(degree, resolved.job, std::string("auto")), std::nullopt);
  EXPECT_EQ(to_toml(get(degree, resolved.job)), "\"auto\"");
  EXPECT_EQ(left_to_planner(resolved.job), std::vector{&degree});
  const Resolved sent = Resolved::deserialize(resolved.serialize());
  EXPECT_EQ(left_to_planner(sent.job), std::vector{&degree});
  for (const std::int64_t wrong : {0, -2})
    EXPECT_TRUE(assign(degree, resolved.job, wrong)) << wrong;
  EXPECT_EQ(assign(degree, resolved.job, std::int64_t{2}), std::nullopt);
  EXPECT_TRUE(left_to_planner(resolved.job).empty());
  // Others have a number for the word.
  const Option& interval = *find_option("checkpoint.interval");
  EXPECT_EQ(assign(interval, resolved.job, std::string("auto")), std::nullopt);
  EXPECT_EQ(resolved.job.checkpoint.interval, 0);
}

}  // namespace
}  // namespace tessera::config
