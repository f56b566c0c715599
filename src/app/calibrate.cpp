// SPDX-License-Identifier: Apache-2.0
// tessera plan calibrate: writes the machine file of the node that it runs on.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <iostream>

#include "calibration.hpp"
#include "command.hpp"
#include "command_line.hpp"
#include "ranks.hpp"
#include "tensor_commands.hpp"
#include "tessera/base/atomic_file.hpp"
#include "tessera/kernels/matrix_product.hpp"
#include "tessera/planner/machine.hpp"

namespace tessera::app {
namespace {

struct Wanted {
  std::string file = "host.toml", folder = ".";
  double seconds = 30;
};

std::string row(const char* name, double float32, double bfloat16) {
  return fmt::format("{:<24}{:>12.4g}{:>12.4g}\n", name, float32 / 1e9, bfloat16 / 1e9);
}

std::string figures(const planner::Host& host) {
  std::string text = fmt::format("{}, {} cores; of each:\n", host.processor, host.cores);
  text += fmt::format("{:<24}{:>12}{:>12}\n", "", "float32", "bfloat16");
  text += row("products, GFLOP/s", host.f32_flops_per_second, host.bf16_flops_per_second);
  text +=
      row("operands, GB/s", host.f32_operand_bytes_per_second, host.bf16_operand_bytes_per_second);
  text += fmt::format("{:<24}{:>12.4g}\n", "copy, GB/s", host.copy_bytes_per_second / 1e9);
  text += fmt::format("{:<24}{:>12.4g}\n", "operation, microseconds", host.kernel_seconds * 1e6);
  text += fmt::format("{:<24}{:>12.4g}\n", "collectives, GB/s", host.rank_bytes_per_second / 1e9);
  text +=
      fmt::format("{:<24}{:>12.4g}\n", "checkpoints, GB/s", host.checkpoint_bytes_per_second / 1e9);
  return text;
}

void write(const Wanted& wanted, const Calibration& found, int ranks) {
  const std::time_t now = std::time(nullptr);
  std::vector<std::string> notes{
      fmt::format("Measured by tessera plan calibrate on {} rank{}, {:%Y-%m-%d}; {}", ranks,
                  ranks == 1 ? "" : "s", fmt::gmtime(now), kernels::host_engines())};
  for (const std::string& assumed : found.assumed) notes.push_back("Not measured: " + assumed);
  write_file_atomically(wanted.file, machine_file(found.host, notes));
  std::cout << figures(found.host);
  for (const std::string& assumed : found.assumed) std::cout << "not measured: " << assumed << '\n';
  std::cout << fmt::format("wrote {0}: tessera plan job.toml --machine {0}\n", wanted.file);
}

int run(const Args& args) {
  Wanted wanted;
  Flags flags(
      "Measures the cores of this node, and writes a machine file for `tessera plan --machine`.\n"
      "On as many ranks as cores, it measures collectives too. Nothing else should compute.",
      "plan calibrate");
  flags.add_option("--to", wanted.file, "the file to write").show_default();
  flags.add_option("--folder", wanted.folder, "where checkpoints are tried; they are removed")
      .show_default();
  flags.add_option("--seconds", wanted.seconds, "about how long it takes")
      .between(1, 3600)
      .show_default();
  if (!flags.parse(args)) return 0;
  planner::require_machine_file("--to", wanted.file);
  return run_on_world([&](comm::World& world, const auto&) {
    const Calibration found = calibrate(world, {wanted.seconds, wanted.folder});
    if (world.rank() == 0) write(wanted, found, world.size());
    return ExitCode::done;
  });
}

const CommandRegistration registration{kCalibrate.name, kCalibrate.summary, &run};

}  // namespace
}  // namespace tessera::app
