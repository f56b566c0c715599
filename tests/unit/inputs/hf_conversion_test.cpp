// SPDX-License-Identifier: Apache-2.0
// Exports that cannot be made.
#include "tessera/inputs/hf_conversion.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "support/error_of.hpp"
#include "support/temporary_folder.hpp"
#include "tessera/base/tensor_slice.hpp"
#include "tessera/checkpoint/stream.hpp"
#include "tessera/hf/config.hpp"
#include "tessera/model_spec/families.hpp"

namespace tessera::inputs {
namespace {

using tessera::test::error_of;
using tessera::test::TemporaryFolder;
using testing::HasSubstr;

class Export : public testing::Test {
 protected:
  Export() {
    checkpoint::write_streamed(
        {.folder = folder_ / "checkpoint"},
        {0,
         "",
         "[model]\nname = \"llama3\"\nflavor = \"debugmodel\"\n",
         "{}",
         {{"model/norm.weight", DType::f32, {4}}}},
        [](const TensorSlice& slice, void* to) { std::memset(to, 0, bytes_of(slice)); });
  }
  ~Export() override { unsetenv("TMPDIR"); }
  std::string fault(ExitCode code) {
    return error_of(code, [&] { export_hf(folder_ / "checkpoint", folder_ / "out", {}); });
  }

  TemporaryFolder folder_;
};

TEST_F(Export, NamesATableThatACheckpointLacks) {
  EXPECT_THAT(fault(ExitCode::checkpoint),
              HasSubstr("step-00000000 holds no table model/tok_embeddings.weight"));
}

TEST_F(Export, SaysThatItCannotUseTheFolderForTemporaryFiles) {
  setenv("TMPDIR", "/no/folder", 1);
  EXPECT_THAT(fault(ExitCode::environment), HasSubstr("set TMPDIR to another one"));
  setenv("TMPDIR", "/proc/self", 1);  // where nobody can make a file
  EXPECT_THAT(fault(ExitCode::environment), HasSubstr("/proc/self/tessera-"));
}

/// TorchTitan's DeepSeek-V3 has YaRN if it is trained with more positions than its original ones.
TEST(ShapeForOthers, HasTheYarnThatTheJobHas) {
  const model::DecoderShape flavor = model::decoder_flavor("deepseek_v3", "671B");
  const auto text = [&](std::int64_t seq_len, std::int64_t step) {
    config::JobConfig job;
    job.training.seq_len = seq_len;
    return hf::config_text(shape_for_others(flavor, job, step), DType::bf16);
  };
  EXPECT_THAT(text(4096, 1), HasSubstr(R"("rope_scaling": null)"));
  for (const char* key : {R"("rope_type": "yarn")", R"("factor": 40)", R"("mscale_all_dim": 1)",
                          R"("original_max_position_embeddings": 4096)"})
    EXPECT_THAT(text(4097, 0), HasSubstr(key));
  EXPECT_THAT(text(262144, 1), HasSubstr(R"("max_position_embeddings": 262144)"));
  EXPECT_THAT(text(262144, 0), HasSubstr(R"("max_position_embeddings": 131072)"));
}

}  // namespace
}  // namespace tessera::inputs
