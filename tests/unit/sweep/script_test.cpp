// SPDX-License-Identifier: Apache-2.0
// The job script of a sweep, run by bash with programs that stand for Slurm's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>

#include "support/temporary_folder.hpp"
#include "sweep_files.hpp"
#include "tessera/base/text_file.hpp"
#include "tessera/sweep/slurm.hpp"

namespace tessera::sweep {
namespace {

namespace fs = std::filesystem;
using tessera::test::TemporaryFolder;
using testing::AllOf;
using testing::HasSubstr;

TEST(ScriptText, QuotesPathsForSbatch) {
  const Sweep sweep =
      test::sweep_of("[slurm]\ncomment = \"say \\\"hi\\\"\"\n[grid]\noptimizer.lr = [1]\n");
  const std::string text =
      script_text(sweep, {"/it's 100%/1", points(sweep), {1, 1}, 0, "/opt/tessera"});
  EXPECT_THAT(text, AllOf(HasSubstr("#SBATCH --output=\"/it's 100%%/1/task-%a.out\"\n"),
                          HasSubstr("#SBATCH --comment=\"say \\\"hi\\\"\"\n"),
                          HasSubstr("#SBATCH --job-name=s\n")));
}

class Script : public testing::Test {
 protected:
  Script() {
    const Sweep sweep =
        test::sweep_of("folder = \"" + path("out") + "\"\n[grid]\noptimizer.lr = [1, 2]\n");
    for (const int number : {1, 2}) fs::create_directories(path("out/" + point_name(number)));
    write_submission(sweep, {path("s"), points(sweep), {1, 2}, 0, "tessera"});
    program("squeue", "exit 0");
    program("scontrol", "case $1 in show) echo \" EndTime=$END \";; *) echo $2 >>" +
                            path("requeued") + ";; esac");
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  void program(const std::string& name, const std::string& lines) {
    fs::permissions(folder_.file("bin/" + name, "#!/bin/bash\n" + lines + "\n"),
                    fs::perms::owner_all);
  }
  /// Runs the script and `meanwhile`, in which $script is its process; returns its exit code.
  int run(const std::string& end, const std::string& meanwhile) const {
    const std::string line = "cd " + path("") + "; PATH=$PWD/bin:$PATH; export DIR=$PWD END='" +
                             end +
                             "' SLURM_JOB_ID=8 SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_ID=1 "
                             "SLURMD_NODENAME=n; bash s/sweep.sbatch >out.log 2>&1 & script=$!; " +
                             meanwhile + "; wait $script";
    const int status = std::system(("bash -c '" + line_quoted(line) + "'").c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string text(const std::string& name) const { return read_text(path(name)).value_or(""); }

  TemporaryFolder folder_;

 private:
  static std::string line_quoted(const std::string& line) {
    std::string quoted;
    for (const char c : line) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted;
  }
};

/// Ranks that end with 75 at a signal, and what scancel does to them and to the script.
const std::string kRanks =
    "echo $$ >$DIR/ranks; trap 'exit 75' TERM USR1; while :; do sleep 0.02; done";
const std::string kCancel =
    "until [ -s ranks ] || [ $SECONDS -gt 20 ]; do sleep 0.02; done; kill -TERM $script; kill "
    "-TERM $(cat ranks)";

TEST_F(Script, ATaskThatIsCancelledIsNotRequeued) {
  program("srun", kRanks);
  EXPECT_EQ(run("2999-01-01T00:00:00", kCancel), 75);
  EXPECT_EQ(text("requeued"), "");
  EXPECT_THAT(text("out/point-0001/attempts.log"), HasSubstr(" 75\n"));
  EXPECT_EQ(text("out/point-0002/attempts.log"), "") << "it starts after the cancelled one";
}

TEST_F(Script, ATaskWhoseTimeIsUpIsRequeued) {
  program("srun", kRanks);
  EXPECT_EQ(run("2001-01-01T00:00:00", kCancel), 75);
  EXPECT_EQ(text("requeued"), "7_1\n");
}

TEST_F(Script, ATaskThatIsWarnedOfItsTimeLimitIsRequeued) {
  program("srun", kRanks);
  EXPECT_EQ(run("Unknown",
                "until [ -s ranks ] || [ $SECONDS -gt 20 ]; do sleep 0.02; done; kill -USR1 $(cat "
                "ranks)"),
            75);
  EXPECT_EQ(text("requeued"), "7_1\n");
}

/// srun returns 0, too, where it could not start its ranks.
TEST_F(Script, APointIsDoneOnceItHasSteps) {
  folder_.file("out/point-0001/attempts.log", "start 2026-01-01T00:00:00Z x\nend x 0\n");
  folder_.file("out/point-0002/attempts.log", "start 2026-01-01T00:00:00Z x\nend x 0\n");
  folder_.file("out/point-0002/metrics.jsonl", "{\"step\": 1}\n");
  program("srun", "echo x >>$DIR/ranks");
  EXPECT_EQ(run("Unknown", "true"), 0);
  EXPECT_EQ(text("ranks"), "x\n") << "the first point alone";
}

TEST_F(Script, APointWithoutReadableFlagsFails) {
  program("srun", "touch $DIR/ranks");
  folder_.file("s/points.list", "1 '--job.description=two\n");
  EXPECT_EQ(run("Unknown", "true"), 2);
  EXPECT_FALSE(fs::exists(path("ranks")));
  EXPECT_THAT(text("out/point-0001/attempts.log"), HasSubstr(" 2\n"));
  EXPECT_THAT(text("out/point-0001/output.log"),
              HasSubstr("\ntessera: points.list: these are no flags"));
}

}  // namespace
}  // namespace tessera::sweep
