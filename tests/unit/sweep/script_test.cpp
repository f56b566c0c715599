// SPDX-License-Identifier: Apache-2.0
// The job script of a sweep, run by bash with programs that stand for Slurm's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
using testing::Not;

TEST(Script, QuotesPathsForSbatch) {
  const Sweep sweep =
      test::sweep_of("[slurm]\ncomment = \"say \\\"hi\\\"\"\n[grid]\noptimizer.lr = [1]\n");
  const std::string text =
      script_text(sweep, {"/it's 100%/1", points(sweep), {1, 1}, 0, "/opt/tessera"});
  EXPECT_THAT(text, AllOf(HasSubstr("#SBATCH --output=\"/it's 100%%/1/task-%a.out\"\n"),
                          HasSubstr("#SBATCH --comment=\"say \\\"hi\\\"\"\n"),
                          HasSubstr("#SBATCH --job-name=s\n")));
}

}  // namespace
}  // namespace tessera::sweep
