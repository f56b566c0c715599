// SPDX-License-Identifier: Apache-2.0
// ranks_probe together | mixed | alone | memory | memory_alone: what ranks of a command may end
// with; each says what it returns.
#include "tessera/kernels/tensor.hpp"

#include <cstdint>
#include <cstdio>
#include <string>

#include "ranks.hpp"

namespace {

using namespace tessera;

/// More than any machine has.
void exhaust_memory() { at::empty({std::int64_t{1} << 50}, at::kByte); }

void end(comm::World& world, const std::string& how) {
  const bool second = world.rank() == 1;
  if (how == "together") fail(ExitCode::data, "the data is bad");
  if (how == "mixed" && !second) fail(ExitCode::communication, "another rank has failed");
  if (how == "mixed") fail(ExitCode::data, "the data is bad");
  if (how == "memory" || (how == "memory_alone" && second)) exhaust_memory();
  if (how == "alone" && second) fail(ExitCode::data, "the data is bad");
  world.control().barrier();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "";
  const int code = app::run_on_ranks(
      {"--training.dataset_path", "tokens"},
      [&](comm::World& world, const app::AgreedJob&, const app::Args&, const auto&) {
        end(world, how);
        return ExitCode::done;
      },
      [](config::Reading&, int) { return std::int64_t{0}; });
  std::printf("returns %d\n", code);
  return code;
}
