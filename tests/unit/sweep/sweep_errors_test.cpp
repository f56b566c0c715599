// SPDX-License-Identifier: Apache-2.0
// What a sweep file must not say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sweep_files.hpp"

namespace tessera::sweep {
namespace {

using test::fault_of;
using testing::AllOf;
using testing::HasSubstr;

std::string with_job(const std::string& text) { return fault_of("job = \"base.toml\"\n" + text); }

TEST(SweepErrors, TellsEveryProblemWithItsPlace) {
  const std::string text = with_job(
      "ranks = 0\n"
      "foldr = \"x\"\n"
      "[grid]\n"
      "optimizer.lrr = [1]\n"
      "optimizer.lr = [\"fast\"]\n"
      "training.steps = 3\n"
      "[zip]\n"
      "training.seq_len = [1, 2]\n"
      "validation.freq = [1, 2, 3]\n");
  EXPECT_THAT(text, AllOf(HasSubstr("6 problems in the sweep"), HasSubstr("s.toml:2:"),
                          HasSubstr("ranks must be"),
                          HasSubstr("s.toml:3:1: unknown key 'foldr'; did you mean 'folder'?"),
                          HasSubstr("s.toml:5:"),
                          HasSubstr("unknown key 'optimizer.lrr'; did you mean 'optimizer.lr'?")));
  EXPECT_THAT(text, AllOf(HasSubstr("optimizer.lr must be a number, not a string (fast)"),
                          HasSubstr("training.steps needs a list of values or a range"),
                          HasSubstr("validation.freq has 3 values, training.seq_len has 2")));
}

TEST(SweepErrors, RefusesWhatMeansNothing) {
  EXPECT_THAT(fault_of("[grid]\noptimizer.lr = [1]\n"), HasSubstr("job is missing"));
  EXPECT_THAT(with_job(""), HasSubstr("nothing varies"));
  EXPECT_THAT(with_job("[grid]\n"), HasSubstr("[grid] is empty"));
  EXPECT_THAT(with_job("[grid]\noptimizer.lr = []\n"), HasSubstr("has no value"));
  EXPECT_THAT(with_job("[grid]\noptimizer.lr = [1, 1.0]\n"), HasSubstr("has the value 1 twice"));
  EXPECT_THAT(with_job("[grid]\noptimizer.lr = [1]\n[zip]\noptimizer.lr = [2]\n"),
              HasSubstr("optimizer.lr is in [grid] too"));
  EXPECT_THAT(with_job("[grid]\njob.dump_folder = [\"a\"]\n"), HasSubstr("is set by the sweep"));
  EXPECT_THAT(with_job("time = 01:00:00\n[grid]\noptimizer.lr = [1]\n"), HasSubstr("in quotes"));
  EXPECT_THAT(with_job("[grid]\noptimizer.lr = [1, 2]\n[[exclude]]\noptimizer.lr = 3\n"),
              HasSubstr("s.toml:5:1: this exclusion matches no point"));
  EXPECT_THAT(with_job("[grid]\noptimizer.lr = [1]\n[[exclude]]\noptimizer.lr = 1\n"),
              HasSubstr("every point is excluded"));
  EXPECT_THAT(with_job("[slurm]\narray = \"1-3\"\n[grid]\noptimizer.lr = [1]\n"),
              HasSubstr("array is set by the sweep; use at_once"));
  EXPECT_THAT(with_job("[[list]]\noptimizer.lr = 1\ntraining.steps = 3\n[[list]]\ntraining.steps "
                       "= 3\noptimizer.lr = 1.0\n"),
              HasSubstr("entries 1 and 2 of list are equal; remove one"));
  EXPECT_THAT(with_job("[zip]\noptimizer.lr = [1, 2, 1]\ntraining.steps = [3, 3, 3]\n"),
              HasSubstr("entries 1 and 3 of zip are equal; remove one"));
  EXPECT_THAT(with_job("[slurm]\nwait = true\n[grid]\noptimizer.lr = [1]\n"),
              HasSubstr("wait is set by the sweep; use tessera sweep status"));
  EXPECT_THAT(with_job("[grid]\ntraining.freeze = [[\"norm\"], [\"x{1,2}\"]]\n"),
              HasSubstr("training.freeze has an element that no flag can pass"));
  EXPECT_THAT(with_job("[grid]\ntraining.freeze = [[\"norm\"], [\"[ab]\"]]\n"),
              HasSubstr("it is empty, in brackets, or has a comma"));
  EXPECT_THAT(with_job("[grid]\ndebug.seed = { linear = [1, 1000], count = 1000 }\ntraining.steps "
                       "= { linear = [1, "
                       "1000], count = 1000 }\n"),
              HasSubstr("1000000 points are too many"));
}

TEST(SweepErrors, RefusesRangesThatAreNone) {
  EXPECT_THAT(with_job("[grid]\noptimizer.lr = { log = [0, 1], count = 3 }\n"),
              HasSubstr("above 0"));
  EXPECT_THAT(with_job("[grid]\noptimizer.lr = { log = [1, 2] }\n"),
              HasSubstr("{ log = [1e-4, 1e-2], count = 5 }"));
  EXPECT_THAT(with_job("[grid]\noptimizer.lr = { lgo = [1, 2], count = 3 }\n"),
              HasSubstr("did you mean 'log'?"));
  EXPECT_THAT(with_job("[grid]\nmodel.flavor = { log = [1, 2], count = 3 }\n"),
              HasSubstr("has no range"));
  EXPECT_THAT(with_job("[grid]\ntraining.steps = { linear = [1, 3], count = 9 }\n"),
              HasSubstr("two of the 9 values are 1, rounded to a whole number; choose a smaller"));
  EXPECT_THAT(with_job("[grid]\ntraining.steps = { linear = [0, 3], count = 2 }\n"),
              HasSubstr("training.steps must be at least 1"));
  EXPECT_THAT(with_job("[grid]\ndebug.seed = { linear = [0, 9223372036854775807], count = 3 }\n"),
              HasSubstr("both ends must be from -9007199254740992 to 9007199254740992"));
  EXPECT_THAT(with_job("[random]\nseed = -1\ncount = 3\noptimizer.lr = { log = [1, 2] }\n"),
              HasSubstr("random.seed must be a whole number from 0 to 9223372036854775807"));
  EXPECT_THAT(with_job("[random]\ncount = 3\noptimizer.lr = { log = [1, 2] }\n"),
              HasSubstr("random.seed is missing"));
  EXPECT_THAT(
      with_job("[random]\nseed = 3\ncount = 3\noptimizer.lr = { log = [1, 2], count = 3 }\n"),
      HasSubstr("random.count sets the number of draws"));
}

TEST(SweepErrors, TellsFaultsOfSyntaxWithTheirLine) {
  EXPECT_THAT(fault_of("job = \n"), AllOf(HasSubstr("s.toml:1:"), HasSubstr("not valid TOML")));
  EXPECT_THROW(read_sweep("/nowhere/s.toml"), Error);
}

}  // namespace
}  // namespace tessera::sweep
