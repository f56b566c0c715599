// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.hpp"
#include "support/temporary_folder.hpp"
#include "tessera/planner/machine.hpp"
#include "tessera/planner/stack.hpp"

namespace tessera::planner {
namespace {

using tessera::test::error_of;
using tessera::test::TemporaryFolder;
using testing::AllOf;
using testing::HasSubstr;

TEST(Files, AllMachinesAndStacksLoad) {
  EXPECT_GE(machine_names().size(), 14U);
  for (const std::string& name : machine_names()) {
    const Machine machine = load_machine(name);
    EXPECT_GT(machine.ceiling_of(Format::bf16), 0) << name;
    EXPECT_LT(machine.ceiling_of(Format::bf16), machine.peak_of(Format::bf16)) << name;
    EXPECT_GT(machine.attention[static_cast<std::size_t>(AttentionKernel::fused)].forward, 0);
  }
  for (const std::string& name : stack_names()) EXPECT_EQ(load_stack(name).name, name);
}

TEST(Files, AStackInheritsWhatItDoesNotSay) {
  const Stack compiled = load_stack("torchtitan-compile"), eager = load_stack("torchtitan-eager");
  EXPECT_EQ(eager.gemm, compiled.gemm);
  EXPECT_GT(eager.traffic, compiled.traffic);
}

TEST(Files, AShortNameIsTheUsualVariant) {
  EXPECT_EQ(load_machine("h100").name, "h100-700w");
  EXPECT_EQ(load_machine("a100").name, "a100-80gb");
}

TEST(Files, OlderAttentionIsTheNextOneThatAMachineKnows) {
  for (const std::string& name : machine_names())
    for (const AttentionRate& rate : load_machine(name).attention) {
      EXPECT_GT(rate.forward, 0) << name;
      EXPECT_GT(rate.backward, 0) << name;
    }
}

TEST(Files, UnknownNamesListTheKnownOnes) {
  EXPECT_THAT(error_of(ExitCode::usage, [] { load_machine("h100-700"); }),
              AllOf(HasSubstr("h100-700w"), HasSubstr("mi300x")));
  EXPECT_THAT(error_of(ExitCode::usage, [] { load_stack("megatron"); }),
              HasSubstr("megatron-bridge"));
}

TEST(Files, AMistakeIsNamedWithItsLine) {
  TemporaryFolder folder;
  folder.file("m.toml", "[gpu]\nmemory_gib = 80\nhbm_gb_s = 3350\n");
  EXPECT_THAT(error_of(ExitCode::usage, [&] { load_machine((folder / "m.toml").string()); }),
              AllOf(HasSubstr("m.toml:3"), HasSubstr("hbm_gb_s"), HasSubstr("hbm_tb_s")));
  folder.file("s.toml", "[constants]\ngemm = \"high\"\n");
  EXPECT_THAT(error_of(ExitCode::usage, [&] { load_stack((folder / "s.toml").string()); }),
              AllOf(HasSubstr("s.toml:2"), HasSubstr("must be a number")));
  for (const auto& [line, problem] : std::vector<std::pair<const char*, const char*>>{
           {"[constants]\ngemm = nan\n", "must be finite"},
           {"[constants]\ngemm = -1\n", "must not be negative"},
           {"[facts]\nkernels = [3, -1]\n", "must not be negative"}}) {
    folder.file("s.toml", line);
    EXPECT_THAT(error_of(ExitCode::usage, [&] { load_stack((folder / "s.toml").string()); }),
                AllOf(HasSubstr("s.toml:2"), HasSubstr(problem)));
  }
  folder.file("t.toml", "inherits = \"" + (folder / "t.toml").string() + "\"\n");
  EXPECT_THAT(error_of(ExitCode::usage, [&] { load_stack((folder / "t.toml").string()); }),
              HasSubstr("inherits from itself"));
}

}  // namespace
}  // namespace tessera::planner
