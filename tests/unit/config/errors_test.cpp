// SPDX-License-Identifier: Apache-2.0
// What a user gets to read: all problems at once, each with its place.
#include <gmock/gmock.h>

#include "config_files.hpp"
#include "slowdown.hpp"

namespace tessera::config {
namespace {

using test::JobFile;
using test::mistake;
using testing::HasSubstr;
using testing::Not;

TEST(Errors, ListAllProblemsInOnePassInReadingOrder) {
  const JobFile file(
      "steps = 3\n[trainning]\nsteps = 5\n[training]\nstpes = 1\nseq_len = "
      "\"long\"\nlocal_batch_size = -3\nsteps = "
      "10\nsteps = 20\n"
      "dtype = \"bf16\"\n[parallelism]\ntensor_parallel_degree = 2.0\n[checkpoint]\nkeep_latest_k "
      "= 1\n");
  const std::string text =
      mistake({file.path(), "--optimizer.lr", "fast", "--training.no_step", "--steps", "4"});
  EXPECT_THAT(text, testing::StartsWith("12 problems in the configuration\n"));
  std::size_t at = 0;
  for (const std::string& line :
       {file.at(1) + "1: unknown key 'steps'; did you mean 'training.steps'?",
        file.at(2) + "2: unknown section 'trainning'; did you mean 'training'?",
        file.at(5) + "1: unknown key 'training.stpes'; did you mean 'training.steps'?",
        file.at(6) + "1: training.seq_len must be an integer, not a string (long)",
        file.at(7) + "1: training.local_batch_size must be at least 1, or auto, not -3",
        file.at(9) + "9: key 'steps' is given twice",
        file.at(10) + "1: training.dtype must be one of float32, bfloat16, float64, not 'bf16'; "
                      "did you mean 'bfloat16'?",
        file.at(12) + "1: parallelism.tensor_parallel_degree must be an integer",
        file.at(14) + "1: keep_latest_k must be",
        std::string("--optimizer.lr: must be a number, not a string (fast)"),
        std::string("--training.no_step: unknown flag; did you mean '--training.steps'?"),
        std::string("--steps: unknown flag; did you mean '--training.steps'?")}) {
    const std::size_t found = text.find(line, at);
    ASSERT_NE(found, text.npos) << line << "\nnot found, or not in its order, in\n" << text;
    at = found;
  }
}

TEST(Errors, OneProblemIsOneLine) {
  EXPECT_EQ(mistake({"--training.steps", "0"}), "--training.steps: must be at least 1, not 0");
}

TEST(Errors, DoNotWarnOfAValueThatWasNotTaken) {
  for (const char* text : {"[lr_scheduler]\ntotal_steps = 300\n[training]\nsteps = '300'\n",
                           "[training]\ndtype = 'float64'\nmixed_precision_param = 'float46'\n"}) {
    const JobFile file(text);
    EXPECT_THAT(read_job({file.path()}).resolved.warnings, testing::IsEmpty()) << text;
  }
}

TEST(Errors, NameSyntaxErrorsWithTheirPlace) {
  for (const auto& [text, line] :
       std::vector<std::pair<std::string, int>>{{"[training\nsteps = 1\n", 1},
                                                {"[training]\nsteps 1\n", 2},
                                                {"[training]\nsteps = \n", 2},
                                                {"[training]\nsteps = 1 2\n", 2},
                                                {"[training]\ndataset = \"c4\n", 2},
                                                {"[training]\n[job]\n[training]\n", 3},
                                                {"[training]\nsteps = \"\xff\"\n", 2},
                                                {std::string("\0\0", 2), 1},
                                                {"training]\n", 1}}) {
    const JobFile file(text);
    EXPECT_THAT(mistake({file.path()}), HasSubstr(file.at(line))) << text;
  }
}

TEST(Errors, SayHowStringsAndBooleansAreWritten) {
  for (const char* value : {"yes", "no", "on", "off", "True", "FALSE", "none", "None", "inside",
                            "tokens", "float32", "bfloat16", "llama3", "data/my.txt", "/data",
                            "./data", "../data", "~/data", "[model, loss]"}) {
    const JobFile file("[training]\nkey = " + std::string(value) + "\n");
    EXPECT_THAT(mistake({file.path()}),
                HasSubstr("; strings need quotes, and booleans are true or false"))
        << value;
  }
  for (const char* value : {"", "1 2", "0x", "1e", "'a", "[1, 2", "{a = 1"}) {
    const JobFile file("[training]\nkey = " + std::string(value) + "\n");
    EXPECT_THAT(mistake({file.path()}), Not(HasSubstr("strings need quotes"))) << value;
  }
}

TEST(Errors, SayHowAFlagTurnsABooleanOff) {
  for (const char* flag :
       {"--no_checkpoint.enable", "--no-checkpoint.enable", "--no_checkpoint.enabel",
        "--checkpoint.no_enabel", "--checkpoint.no-enabled"})
    EXPECT_THAT(mistake({flag}),
                testing::EndsWith("unknown flag; did you mean '--checkpoint.no_enable'?"))
        << flag;
  EXPECT_FALSE(resolve({"--checkpoint.no_enable"}).job.checkpoint.enable);
  EXPECT_THAT(mistake({"--no_training.steps", "7"}), HasSubstr("did you mean '--training.steps'?"));
}

TEST(Errors, StillCheckFlagsWhenTheFileIsBroken) {
  const JobFile file("[training\n");
  EXPECT_THAT(mistake({file.path(), "--training.stepz", "1"}),
              HasSubstr("did you mean '--training.steps'?"));
}

TEST(Errors, SurviveHostileFiles) {
  std::string dots = "a", tables = "[a", brackets = "x = ";
  for (int i = 0; i < 200'000; ++i) dots += ".a", tables += ".a", brackets += "[";
  for (const std::string& text :
       {dots + " = 1\n", tables + "]\n", brackets + "\n", "x = {a = " + dots + " = 1}\n",
        std::string(2 << 20, '#'), "x = '" + std::string(100'000, 'y') + "'\n[a" + dots + "]\n",
        // A string may end in two quotes of its own: what follows is no string.
        "x = [\"\"\"y\"\"\"\", {a." + dots + " = 1}]\n",
        "x = ['''y''''', {a." + dots + " = 1}]\n"}) {
    const JobFile file(text);
    const std::string message = mistake({file.path()});
    EXPECT_THAT(message, HasSubstr(file.path()));
    EXPECT_LT(message.size(), 1000u);
  }
}

TEST(Errors, ThousandsOfUnknownKeysTakeNoTime) {
  std::string text;
  for (int i = 0; i < 45'000; ++i) text += "trainning_steps" + std::to_string(i) + "=1\n";
  const JobFile file(text);
  const double begin = tessera::test::cpu_seconds();
  EXPECT_THAT(mistake({file.path()}), HasSubstr("... and 44900 more"));
  EXPECT_LT(tessera::test::cpu_seconds() - begin, tessera::test::kSlowdown * 15);
}

TEST(Errors, BoundsDoNotHitOrdinaryFiles) {
  std::string names;
  for (int layer = 0; layer < 126; ++layer)
    names += "'layers." + std::to_string(layer) + ".attention.wq', ";
  const JobFile file(
      "# "
      "dots............................................................\n[quantize.linear.float8]"
      "\nfilter_fqns = [" +
      names +
      "]\n[job]\ndescription = "
      "'''[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\n..........................................'''"
      "\n");
  EXPECT_EQ(resolve({file.path()}).job.quantize.linear.float8.filter_fqns.size(), 126u);
}

TEST(Errors, KeepLongOrStrangeWordsShort) {
  const std::string message = mistake({"--" + std::string(5000, 'x')});
  EXPECT_LT(message.size(), 300u);
  EXPECT_THAT(mistake({"--a\nb"}), Not(HasSubstr("\n")));
  const JobFile file("[training]\n'" + std::string(5000, 'y') + "' = 1\nmode = '" +
                     std::string(5000, 'z') + "'\ndtype = '" + std::string(5000, 'z') +
                     "'\nsteps = '" + std::string(5000, 'z') + "'\n");
  EXPECT_LT(mistake({file.path()}).size(), 1500u);
}

/// Found by fuzzing: the job's own TOML could not be read again.
TEST(Errors, RefuseFlagsThatAreNoText) {
  for (const char* bad : {"a\x80", "\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80",
                          "\xF5", "\xE2\x82", "x\xE1ll"})
    EXPECT_THAT(mistake({"--job.description", bad}),
                HasSubstr("--job.description: its value is not valid UTF-8"));
  const std::string fine = "\u00e9 \u20ac \ud7ff \ue000 \U0001F600 \U0010FFFF";
  EXPECT_EQ(resolve({"--job.description", fine}).job.job.description, fine);
}

TEST(Errors, NameFilesThatCannotBeRead) {
  EXPECT_THAT(mistake({"/no/such/job.toml"}),
              HasSubstr("/no/such/job.toml: cannot read the configuration file: No such file"));
  EXPECT_THAT(mistake({"/tmp"}), HasSubstr("directory"));
  EXPECT_THAT(mistake({"/dev/zero"}), HasSubstr("larger"));
  EXPECT_THAT(mistake({"a.toml", "b.toml"}), HasSubstr("b.toml: a second job file"));
}

TEST(Errors, AreNotAttractedByAFlagsMissingValue) {
  EXPECT_EQ(mistake({"--training.steps", "--compile.enable"}),
            "--training.steps: needs a value of type integer");
  EXPECT_EQ(mistake({"--training.steps"}), "--training.steps: needs a value of type integer");
  EXPECT_THAT(mistake({"--debug.deterministic", "yes"}),
              HasSubstr("--debug.deterministic: must be a boolean"));
  EXPECT_THAT(mistake({"--debug.no_deterministic=true"}), HasSubstr("takes no value"));
  EXPECT_THAT(mistake({"--training.steps", "1", "--training.steps", "2"}), HasSubstr("twice"));
  EXPECT_THAT(mistake({"--training"}), HasSubstr("a section, not a key"));
  EXPECT_EQ(mistake({"-training.steps", "5"}),
            "-training.steps: a flag has two dashes: --training.steps");
  EXPECT_EQ(mistake({"-x", "5"}), "-x: unknown flag; flags are --section.key value");
  EXPECT_THAT(mistake({"--debug.deterministic", "yes"}),
              HasSubstr("must be a boolean (true or false), not a string (yes)"));
}

TEST(Errors, RefuseNumbersThatDoNotFit) {
  EXPECT_THAT(mistake({"--parallelism.tensor_parallel_degree", "3000000000"}),
              HasSubstr("at most 2147483647"));
  EXPECT_THAT(mistake({"--training.steps", "99999999999999999999"}),
              HasSubstr("must be an integer"));
  EXPECT_THAT(mistake({"--optimizer.lr", "nan"}), HasSubstr("must be"));
  EXPECT_THAT(mistake({"--optimizer.beta1", "1"}), HasSubstr("at least 0 and below 1"));
  EXPECT_THAT(mistake({"--training.steps", "1e3"}), HasSubstr("must be an integer"));
  EXPECT_THAT(mistake({"--training.steps", ""}), HasSubstr("must be an integer"));
}

}  // namespace
}  // namespace tessera::config
