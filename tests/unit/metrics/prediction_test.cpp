// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/prediction.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.hpp"
#include "support/temporary_folder.hpp"

namespace tessera::metrics {
namespace {

using tessera::test::content_of;
using tessera::test::put;
using tessera::test::TemporaryFolder;
using testing::HasSubstr;
using testing::Not;

TEST(Prediction, StandsBesideWhatWasMeasured) {
  const RunFigures predicted{0.25, 64 << 20, {{"forward", 0.08}, {"waiting in tp", 0.02}}},
      measured{
          0.2, 80 << 20, {{"forward", 0.05}, {"waiting in tp", 0.03}, {"waiting in pp", 0.01}}};
  EXPECT_EQ(text_of({"2 cores of X", predicted, measured}),
            "  predicted for 2 cores of X, and measured:\n"
            "    step               250 ms      200 ms    +25 %\n"
            "    memory           64.0 MiB    80.0 MiB    -20 %\n"
            "    waiting             20 ms       40 ms    -50 %\n"
            "    off most: forward, 80 ms of a step predicted, 50 ms measured\n");
}

TEST(Prediction, APartThatOneOfThemLacksIsOffToo) {
  EXPECT_THAT(
      text_of({"X", {1, 0, {{"forward", 1}}}, {1, 0, {{"forward", 0.9}, {"waiting in pp", 0.3}}}}),
      HasSubstr("off most: waiting in pp, 0 ms of a step predicted, 300 ms measured\n"));
}

TEST(Prediction, SaysNothingOfMemoryThatIsNotKnown) {
  EXPECT_THAT(text_of({"X", {1, 5, {}}, {1, 0, {}}}), Not(HasSubstr("memory")));
}

TEST(Prediction, EveryPartOfEitherHasARow) {
  const std::vector<PredictionRow> rows =
      part_rows({"X", {1, 0, {{"forward", 0.5}}}, {1, 0, {{"forward", 0.4}, {"data", 0.1}}}});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].difference, "+25 %");
  EXPECT_EQ(rows[1].name, "data");
  EXPECT_EQ(rows[1].difference, "");
}

TEST(Prediction, IsReadAsItWasWritten) {
  const TemporaryFolder folder;
  EXPECT_FALSE(read_prediction(folder.path()));
  const Prediction wrote{"2 cores of X", {0.25, 64, {{"forward", 0.08}}}, {0.2, 80, {}}, 512};
  write_prediction(folder.path(), wrote, "[host]\n");
  const std::optional<Prediction> read = read_prediction(folder.path());
  ASSERT_TRUE(read);
  EXPECT_EQ(text_of(*read), text_of(wrote));
  EXPECT_EQ(read->vocabulary, 512);
  EXPECT_EQ(content_of(folder / kMachineFile), "[host]\n");
  forget_prediction(folder.path());
  EXPECT_FALSE(read_prediction(folder.path()));
  EXPECT_FALSE(std::filesystem::exists(folder / kMachineFile));
}

TEST(Prediction, ADamagedFileIsNamed) {
  const TemporaryFolder folder;
  for (const char* text :
       {"", "[]", "{\"machine\": 3}", "{\"machine\": \"X\", \"predicted\": []}",
        "{\"machine\": \"X\", \"predicted\": {\"step_seconds\": 1, \"memory_bytes\": 1e300, "
        "\"parts_seconds\": {}}}",
        "{\"machine\": \"X\", \"predicted\": {\"step_seconds\": 1, "
        "\"memory_bytes\": 18446744073709551615, \"parts_seconds\": {}}}"}) {
    put(folder / "prediction.json", text);
    EXPECT_THAT(test::error_of(ExitCode::data, [&] { read_prediction(folder.path()); }),
                HasSubstr("prediction.json is not the JSON of a prediction"))
        << text;
  }
}

}  // namespace
}  // namespace tessera::metrics
