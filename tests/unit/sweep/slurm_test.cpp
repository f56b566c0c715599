// SPDX-License-Identifier: Apache-2.0
// The array job of a sweep, without a Slurm.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.hpp"
#include "support/temporary_folder.hpp"
#include "sweep_files.hpp"
#include "tessera/sweep/slurm.hpp"

namespace tessera::sweep {
namespace {

using tessera::test::error_of;
using tessera::test::TemporaryFolder;
using test::sweep_of;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(Slurm, AnArrayHasAPointATaskUntilMaxArraySizeIsReached) {
  const auto shape = [](std::size_t points, int size) {
    const ArrayShape s = array_shape(points, size);
    EXPECT_LT(s.tasks, size);
    EXPECT_GE(static_cast<std::size_t>(s.tasks * s.per_task), points);
    EXPECT_LT(static_cast<std::size_t>((s.tasks - 1) * s.per_task), points)
        << "the last task has a point";
    return std::pair(s.tasks, s.per_task);
  };
  EXPECT_EQ(shape(16, 1001), std::pair(16, 1));
  EXPECT_EQ(shape(1000, 1001), std::pair(1000, 1));
  EXPECT_EQ(shape(1001, 1001), std::pair(501, 2));
  EXPECT_EQ(shape(10, 4), std::pair(3, 4));
  EXPECT_EQ(shape(7, 2), std::pair(1, 7));
  EXPECT_THROW(array_shape(3, 1), Error);
}

TEST(Slurm, TheScriptSaysWhatTheSweepSays) {
  const Sweep sweep = sweep_of(
      "folder = \"out dir\"\nranks = 8\ntime = \"00:20:00\"\n[slurm]\npartition = "
      "\"gpu\"\nexclusive = true\nnodes = "
      "2\n"
      "[grid]\noptimizer.lr = [1, 2, 3]\njob.description = [\"it's\"]\n");
  const Submission submission{"/sub mit/1", points(sweep), {2, 2}, 4, "/opt/tessera"};
  const std::string text = script_text(sweep, submission);
  EXPECT_THAT(text,
              AllOf(HasSubstr("#SBATCH --array=1-2%4\n"), HasSubstr("#SBATCH --ntasks=8\n"),
                    HasSubstr("#SBATCH --time=00:40:00\n"), HasSubstr("#SBATCH --partition=gpu\n"),
                    HasSubstr("#SBATCH --exclusive\n"), HasSubstr("#SBATCH --nodes=2\n"),
                    HasSubstr("#SBATCH --signal=USR1@120\n"), HasSubstr("per_task=2\n")));
  EXPECT_THAT(text, AllOf(HasSubstr("here='/sub mit/1'"), HasSubstr("/out dir'"),
                          HasSubstr("{TESSERA:-/opt/tessera}"), Not(HasSubstr("@PROGRAM@"))));
  EXPECT_EQ(list_text(sweep, submission),
            "1 --optimizer.lr=1 '--job.description=it'\\''s'\n2 --optimizer.lr=2 "
            "'--job.description=it'\\''s'\n"
            "3 --optimizer.lr=3 '--job.description=it'\\''s'\n");
}

TEST(Slurm, WithoutALimitNoneIsAskedFor) {
  const Sweep sweep = sweep_of("[grid]\noptimizer.lr = [1, 2]\n");
  const std::string text = script_text(sweep, {"/s/1", points(sweep), {2, 1}, 0, "/opt/tessera"});
  EXPECT_THAT(text, AllOf(HasSubstr("#SBATCH --array=1-2\n"), Not(HasSubstr("--time="))));
}

TEST(Slurm, EachSubmissionHasAFolderOfItsOwn) {
  const TemporaryFolder folder;
  EXPECT_EQ(next_submission(folder.path()), folder.path() / "submissions" / "1");
  folder.file("submissions/1/x", "");
  EXPECT_EQ(next_submission(folder.path()), folder.path() / "submissions" / "2");
}

TEST(Slurm, NamesADamagedSubmission) {
  for (const char* text : {R"({"job": 7, "per_task": 1, "points": [1]})",
                           R"({"job": "7", "per_task": 0, "points": []})",
                           R"({"job": "7", "per_task": 2147483648, "points": []})",
                           R"({"job": "7", "per_task": 1, "points": [1, 1e80]})",
                           R"({"job": "7", "per_task": 1, "points": 3})",
                           R"({"job": "7", "per_task": 1})", R"({"job")", "[]"}) {
    const TemporaryFolder folder;
    folder.file("submissions/1/submission.json", text);
    std::vector<PointStatus> none;
    EXPECT_THAT(error_of(ExitCode::data, [&] { add_queue_states(folder.path(), none); }),
                HasSubstr("submissions/1/submission.json is damaged"))
        << text;
  }
}

TEST(Slurm, StatusDoesWithoutSubmissions) {
  const TemporaryFolder folder;
  std::vector<PointStatus> none;
  EXPECT_TRUE(add_queue_states(folder.path(), none));
}

}  // namespace
}  // namespace tessera::sweep
