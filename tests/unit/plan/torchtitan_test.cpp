// SPDX-License-Identifier: Apache-2.0
// TorchTitan v0.2.2's job files and the command lines of its integration tests: each would run, or
// is refused with its reason. Nothing of the files that they name is read.
#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "tessera/config/option_table.hpp"
#include "tessera/plan/job_plan.hpp"

namespace tessera::plan {
namespace {

using testing::HasSubstr;

const std::string kAssets = TESSERA_TEST_DATA "/../assets/torchtitan/";

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at; (at = text.find(what)) != std::string::npos;)
    text.replace(at, what.size(), by);
  return text;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

/// A row "refused: KEY" is stale where the option table takes the key by now; one "refused: WORDS"
/// is about no key alone.
bool still_refused(const std::string& expected) {
  const config::Option* option = config::find_option(expected.substr(expected.find(' ') + 1));
  return !option || option->support == config::Support::refused;
}

/// "acts" or what is wrong.
std::string outcome(Planner& planner, const std::vector<std::string>& args, int ranks) {
  config::Reading job = config::read_job(args);
  planner.plan(job, ranks, 0);
  if (job.problems.empty()) return "acts";
  EXPECT_EQ(job.problems.size(), 1u) << message_of(job.problems);
  return "refused: " + message_of(job.problems);
}

struct Line {
  std::string test, expected;
  int ranks;
  std::vector<std::string> flags;
};

std::vector<Line> lines() {
  std::ifstream file(kAssets + "lines.txt");
  std::vector<Line> all;
  for (std::string text; std::getline(file, text);) {
    if (text.starts_with('#')) continue;
    std::istringstream parts(text);
    std::string test, ranks, expected, flags;
    std::getline(parts, test, '|'), std::getline(parts, ranks, '|'),
        std::getline(parts, expected, '|'), std::getline(parts, flags);
    all.push_back({test, expected.substr(1, expected.find_last_not_of(' ')), std::stoi(ranks),
                   words_of(replaced(flags, "$ASSETS/", kAssets))});
  }
  return all;
}

TEST(TorchTitan, EachOfItsCommandLinesActsOrIsRefusedWithItsReason) {
  Planner planner;
  ASSERT_EQ(lines().size(), 66u);
  for (const Line& line : lines()) {
    SCOPED_TRACE(line.test + testing::PrintToString(line.flags));
    const bool own_file = !line.flags.empty() && line.flags[0] == "--job.config_file";
    std::vector<std::string> args = line.flags;
    if (!own_file) args.insert(args.begin(), kAssets + "base.toml");
    const std::string found = outcome(planner, args, line.ranks);
    if (line.expected == "acts") {
      EXPECT_EQ(found, "acts");
    } else {
      EXPECT_TRUE(still_refused(line.expected)) << "correct the row of " << line.test;
      EXPECT_THAT(found, testing::StartsWith("refused: "));
      EXPECT_THAT(found, HasSubstr(line.expected.substr(std::string("refused: ").size())));
    }
  }
}

/// On as many ranks as they were written for.
TEST(TorchTitan, ItsJobFilesAct) {
  Planner planner;
  const std::vector<std::pair<const char*, int>> files{{"base", 8},
                                                       {"llama3_debug_model", 8},
                                                       {"llama3_8b", 8},
                                                       {"llama3_70b", 256},
                                                       {"llama3_405b", 512},
                                                       {"qwen3_0.6b", 8},
                                                       {"qwen3_1.7b", 8},
                                                       {"qwen3_32b", 64},
                                                       {"qwen3_moe_debug", 8},
                                                       {"deepseek_v3_debug_model", 8},
                                                       {"deepseek_v3_16b", 64},
                                                       {"deepseek_v3_671b", 1024},
                                                       {"gpt_oss_debug_model", 8}};
  ASSERT_EQ(files.size(), 13u);
  for (const auto& [name, ranks] : files) {
    config::Reading job = config::read_job({kAssets + name + ".toml", "--data", "x"});
    planner.plan(job, ranks, 0);
    EXPECT_TRUE(job.problems.empty()) << name << "\n" << message_of(job.problems);
  }
}

}  // namespace
}  // namespace tessera::plan
