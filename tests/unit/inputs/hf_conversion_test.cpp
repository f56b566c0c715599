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

}  // namespace
}  // namespace tessera::inputs
