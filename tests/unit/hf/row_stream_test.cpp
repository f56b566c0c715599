// SPDX-License-Identifier: Apache-2.0
#include "row_stream.hpp"

#include <gtest/gtest.h>

#include "support/temporary_folder.hpp"
#include "tessera/base/error.hpp"
#include "tessera/checkpoint/checkpoint_reader.hpp"
#include "tessera/checkpoint/save.hpp"

namespace tessera::hf {
namespace {

using checkpoint::SliceView;
using tessera::test::TemporaryFolder;

TEST(RowStream, PermutesRowsInBoundedMemory) {
  const TemporaryFolder folder;
  const auto control = comm::make_self_communicator("control");
  std::vector<float> values(7 * 3);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  float scalar = 8;
  const SliceView views[] = {{{"model/w", DType::f32, {7, 3}, {{0, 0}, {7, 3}}}, values.data()},
                             {{"model/s", DType::f32, {}, {{}, {}}}, &scalar}};
  checkpoint::SaveOptions options;
  options.folder = folder.path(), options.coord_name = "r0";
  checkpoint::save(*control, options, {1}, views);
  const checkpoint::CheckpointReader opened = checkpoint::open(*control, folder / "step-00000001");
  SafetensorsWriter writer(folder / "out.safetensors",
                           {{"w", DType::bf16, {7, 3}}, {"s", DType::f32, {}}});
  stream(opened, {"model/w", "w", DType::bf16, [](std::int64_t row) { return 6 - row; }}, writer);
  stream(opened, {"model/s", "s", DType::f32, {}}, writer);
  writer.finish();
  const SafetensorsReader reader(folder / "out.safetensors");
  std::vector<float> back(21);
  reader.read_whole("w", DType::f32, back.data());
  for (int row = 0; row < 7; ++row)
    EXPECT_EQ(back[static_cast<std::size_t>(3 * row)], static_cast<float>(3 * (6 - row)));
  int chunks = 0;
  for_each_row_chunk(opened, "model/w", DType::f64, 50,
                     [&](std::int64_t first, std::int64_t rows, const void* data) {
                       ++chunks;
                       EXPECT_EQ(static_cast<const double*>(data)[0],
                                 static_cast<double>(3 * first));
                       EXPECT_LE(rows, 2);
                     });
  EXPECT_EQ(chunks, 4);
  EXPECT_THROW(find_source(opened, "model/x"), Error);
}

}  // namespace
}  // namespace tessera::hf
