// SPDX-License-Identifier: Apache-2.0
// The program as scripts see it: exit codes, what stands on which stream.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "command.hpp"
#include "command_line.hpp"

namespace tessera::app {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

struct Outcome {
  int code;
  std::string out, err;
};

Outcome outcome(const Args& args) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int code = run(args);
  return {code, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

int throw_what(const Args& args) {
  if (args.at(0) == "error") fail(ExitCode::data, "the tokenizer is missing (x); name one");
  if (args.at(0) == "junk")
    fail(ExitCode::data, "no such tensor: '\x1b[2J\r{}'", std::string(1 << 20, 'x'));
  if (args.at(0) == "bug") throw std::logic_error("impossible");
  if (args.at(0) == "contract") TESSERA_EXPECT(false, "n is {}", 1);
  if (args.at(0) == "memory") throw std::bad_alloc();
  throw 3;
}

const CommandRegistration thrower{"throw", "throws", &throw_what};

int keep_boxes(const Args& args) {
  std::string folder, to;
  int count = 0;
  double weight = 1;
  Flags boxes("Keeps boxes.", "boxes");
  boxes.require_subcommand();
  boxes.add_subcommand("list", "all boxes").add_option("folder", folder, "where").required();
  Flags moving = boxes.add_subcommand("move", "moves them");
  moving.add_option("--to", to, "where to").required();
  moving.add_option("--count", count, "how many").between(1, 4096);
  moving.add_option("--most", count, "at most").at_least(0);
  moving.add_option("--weight", weight, "of each").positive();
  if (boxes.parse(args)) std::printf("%d to %s\n", count, to.c_str());
  return 0;
}

const CommandRegistration keeper{"boxes", "keeps boxes", &keep_boxes};

TEST(App, ListsItsCommands) {
  for (const Args& args : {Args{"--help"}, Args{"-h"}, Args{"help"}}) {
    const Outcome o = outcome(args);
    EXPECT_EQ(o.code, 0);
    for (const Command& command : commands()) EXPECT_THAT(o.out, HasSubstr(command.name));
  }
}

TEST(App, KeepsWhatFilesHoldFromTheTerminal) {
  const Outcome o = outcome({"throw", "junk"});
  EXPECT_EQ(o.code, 4);
  EXPECT_THAT(o.err, StartsWith("tessera: no such tensor: '?[2J?xxx"));
  EXPECT_LT(o.err.size(), 40'000u);
}

TEST(App, NamesTheNearestFlagAndCommand) {
  const std::pair<Args, const char*> mistakes[] = {
      {{"boxes", "lst"}, "`tessera boxes` has no command 'lst'; did you mean 'list'?"},
      {{"boxes"}, "`tessera boxes` needs a command: list, move"},
      {{"boxes", "move"}, "--to is required; `tessera boxes move --help` shows its use"},
      {{"boxes", "list", "a", "--ful"},
       "`tessera boxes list` has no flag '--ful'; `tessera boxes list --help` lists them"},
      {{"boxes", "move", "--to", "b", "--cont", "4"},
       "`tessera boxes move` has no flag '--cont'; did you mean '--count'?"},
      {{"boxes", "list", "a", "b"}, "`tessera boxes list` takes no further argument 'b'"},
      {{"boxes", "move", "--to", "b", "--count", "0"}, "--count: must be 1 to 4096, not 0;"},
      {{"boxes", "move", "--to", "b", "--count", "x"}, "--count: must be 1 to 4096, not x;"},
      {{"boxes", "move", "--to", "b", "--weight", "0"}, "--weight: must be greater than 0, not 0;"},
      {{"boxes", "move", "--to", "b", "--most", "-1"}, "--most: must be at least 0, not -1;"}};
  for (const auto& [args, message] : mistakes) {
    const Outcome o = outcome(args);
    EXPECT_EQ(o.code, 2);
    EXPECT_THAT(o.err, HasSubstr(message));
  }
}

TEST(App, ReadsFlags) {
  EXPECT_EQ(outcome({"boxes", "move", "--to=there", "--count", "7"}).out, "7 to there\n");
}

TEST(App, HelpsWithASubcommand) {
  for (const Args& args : {Args{"help", "boxes", "move"}, Args{"boxes", "move", "--help"}}) {
    const Outcome o = outcome(args);
    EXPECT_EQ(o.code, 0);
    EXPECT_THAT(o.out, HasSubstr("Usage: tessera boxes move [OPTIONS]"));
    EXPECT_THAT(o.out, HasSubstr("--weight"));
  }
}

TEST(App, TurnsExceptionsIntoMessagesAndCodes) {
  const Outcome error = outcome({"throw", "error"});
  EXPECT_EQ(error.code, 4);
  EXPECT_EQ(error.err, "tessera: the tokenizer is missing (x); name one\n");
  for (const char* what : {"bug", "contract", "int"}) {
    const Outcome bug = outcome({"throw", what});
    EXPECT_EQ(bug.code, 134);
    EXPECT_THAT(bug.err, StartsWith("tessera: this is a bug"));
  }
  EXPECT_EQ(outcome({"throw", "memory"}).code, 3);
}

TEST(App, TellsItsVersion) {
  const Outcome text = outcome({"--version"});
  EXPECT_EQ(text.code, 0);
  EXPECT_THAT(text.out, StartsWith("tessera 0."));
  const auto json = nlohmann::json::parse(outcome({"--version", "--json"}).out);
  for (const char* name :
       {"compiler", "build_type", "mpi", "hdf5", "libtorch", "kokkos", "cuda", "nccl"})
    EXPECT_THAT(json.at("build").at(name).get<std::string>(), Not(IsEmpty())) << name;
  EXPECT_TRUE(json.at("run").is_object());
}

}  // namespace
}  // namespace tessera::app
