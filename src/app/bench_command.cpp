// SPDX-License-Identifier: Apache-2.0
// tessera bench gemm | kernels | comm | checkpoint | step: the speed of this machine beside its
// limits.
#include <fmt/format.h>

#include <charconv>
#include <iostream>
#include <nlohmann/json.hpp>

#include "bench.hpp"
#include "bench_step.hpp"
#include "command.hpp"
#include "command_line.hpp"
#include "ranks.hpp"
#include "tensor_commands.hpp"
#include "tessera/base/json.hpp"
#include "tessera/metrics/human.hpp"
#include "tessera/train/bench_device.hpp"

namespace {

using tessera::ExitCode;
using tessera::app::Args;
using tessera::app::BenchRow;
using tessera::app::GemmShape;

GemmShape shape_of(const std::string& text) {
  GemmShape shape;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::int64_t* size : {&shape.m, &shape.k, &shape.n}) {
    const auto [next, error] = std::from_chars(at, end, *size);
    tessera::require(error == std::errc() && *size > 0 && *size < 1'000'000 &&
                         (size == &shape.n ? next == end : next != end && *next == 'x'),
                     ExitCode::usage,
                     "--shape {} is not MxKxN, such as 2048x512x512, with sizes up to 999999",
                     text);
    at = next + 1;
  }
  return shape;
}

enum class What : std::uint8_t { products, kernels, calls, checkpoints };

void print_table(const std::vector<BenchRow>& rows, What what) {
  const bool products = what == What::products;
  const bool calls = what == What::calls;
  std::cout << fmt::format("{:<34}{:>12}{:>16}{:>16}{:>9}\n", "measured", "microseconds",
                           calls ? "bus bandwidth" : "speed", "limit", "share");
  const auto rate = [&](double value) {
    return products ? tessera::metrics::human_flops(value)
                    : fmt::format("{:.3g} GB/s", value / 1e9);
  };
  for (const BenchRow& row : rows)
    std::cout << fmt::format(
        "{:<34}{:>12.1f}{:>16}{:>16}{:>9}\n", row.name, row.seconds * 1e6, rate(row.rate),
        row.limit > 0 ? rate(row.limit) : (calls ? "unknown" : ""),
        row.limit > 0 ? fmt::format("{:.1f} %", 100 * row.rate / row.limit) : "");
}

void print_json(const std::vector<BenchRow>& rows, What what) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  const std::string rate = what == What::products ? "flops_per_second" : "bytes_per_second";
  for (const BenchRow& row : rows) {
    json.push_back({{"name", row.name}, {"seconds", row.seconds}, {rate, row.rate}});
    json.back()["limit"] =
        row.limit > 0 ? nlohmann::ordered_json(row.limit) : nlohmann::ordered_json(nullptr);
  }
  std::cout << tessera::json_text(json, 2) << "\n";
}

struct Wanted {
  What what = What::products;
  bool json = false;
  std::string device = "auto";
  bool shares_device = false, registered = false;
  std::vector<std::string> types{"float32", "bfloat16"};
  std::vector<std::string> shape_texts;
  /// empty or 0: by the device
  std::vector<GemmShape> shapes;
  std::vector<std::int64_t> bytes;
  std::int64_t rows = 0, columns = 0;
  std::string folder = ".";
  std::int64_t mebibytes = 256;
};

/// Where the command line says nothing: a matrix or a message of a small model on the host, and of
/// one with 4,096 features a token on a GPU.
void set_defaults(Wanted& wanted, bool on_gpu) {
  using Shapes = std::vector<GemmShape>;
  if (wanted.shapes.empty())
    wanted.shapes =
        on_gpu ? Shapes{{4096, 4096, 4096},
                        {8192, 4096, 4096},
                        {8192, 4096, 14336},
                        {8192, 14336, 4096}}
               : Shapes{{512, 512, 512}, {2048, 512, 512}, {2048, 512, 2048}, {2048, 2048, 512}};
  if (wanted.bytes.empty()) {
    wanted.bytes = {1024, 16384, 262144, 4194304, 16777216};
    if (on_gpu) wanted.bytes.insert(wanted.bytes.end(), {67108864, 268435456});
  }
  if (wanted.rows == 0) wanted.rows = on_gpu ? 16384 : 4096;
  if (wanted.columns == 0) wanted.columns = on_gpu ? 4096 : 1024;
}

std::vector<BenchRow> measure(const tessera::train::BenchDevice& on, const Wanted& wanted) {
  switch (wanted.what) {
    case What::products:
      return tessera::app::bench_gemm(on, wanted.types, wanted.shapes);
    case What::kernels:
      return tessera::app::bench_kernels(on, wanted.rows, wanted.columns);
    default:
      tessera::require(!wanted.registered || on.is_gpu(), ExitCode::usage,
                       "--registered measures memory that NCCL knows, and this runs on the host");
      return tessera::app::bench_comm(on, wanted.bytes, wanted.registered);
  }
}

tessera::plan::DevicePlan device_of(const Wanted& wanted) {
  using enum tessera::plan::DeviceChoice;
  tessera::plan::DevicePlan plan;
  plan.choice = wanted.device == "cuda" ? cuda : wanted.device == "cpu" ? cpu : automatic;
  plan.share = wanted.shares_device;
  return plan;
}

std::vector<BenchRow> measure(tessera::comm::World& world, Wanted wanted) {
  if (wanted.what == What::checkpoints)
    return tessera::app::bench_checkpoint(world, wanted.folder, wanted.mebibytes << 20);
  tessera::require(wanted.what != What::calls || world.size() > 1, ExitCode::usage,
                   "bench comm measures transfers between ranks; start it on several: "
                   "`tessera launch -n 4 -- bench comm`");
  const tessera::train::BenchDevice on(world, device_of(wanted));
  set_defaults(wanted, on.is_gpu());
  if (world.rank() == 0 && on.is_gpu() && !wanted.json) std::cout << "on " << on.name() << "\n";
  return measure(on, wanted);
}

int measure(Wanted wanted) {
  for (const std::string& text : wanted.shape_texts) wanted.shapes.push_back(shape_of(text));
  tessera::require(wanted.device == "auto" || wanted.device == "cuda" || wanted.device == "cpu",
                   ExitCode::usage, "--job.device {} is none of auto, cuda and cpu", wanted.device);
  for (const std::string& type : wanted.types)
    tessera::require(type == "float32" || type == "bfloat16", ExitCode::usage,
                     "--dtype {} is neither float32 nor bfloat16", type);
  return tessera::app::run_on_world([&](tessera::comm::World& world, const auto&) {
    const std::vector<BenchRow> rows = measure(world, wanted);
    if (world.rank() == 0)
      wanted.json ? print_json(rows, wanted.what) : print_table(rows, wanted.what);
    return ExitCode::done;
  });
}

/// `bench step` alone takes a job's flags, too.
tessera::app::SplitArgs split(const Args& args) {
  if (args.empty() || args.front() != "step") return {args, {}};
  return tessera::app::split_job_flags(args);
}

int run(const Args& args) {
  Wanted wanted;
  int steps = 10;
  std::string job_file;
  tessera::app::Flags app(
      "Measures this machine beside its limits. All ranks work at once; the results\n"
      "are those of the slowest rank. Start it on all ranks with srun, mpirun or `tessera launch`.",
      "bench");
  auto gemm = app.add_subcommand(
      "gemm",
      "matrix products; the limit is the GPU's peak, or the estimate for this rank's cores");
  gemm.add_option("--shape", wanted.shape_texts, "products [M, K] x [K, N], as MxKxN")
      .delimiter(',');
  gemm.add_option("--dtype", wanted.types, "float32, bfloat16").delimiter(',');
  auto kernels = app.add_subcommand(
      "kernels", "norms, gates and the optimizer; the limit is a copy in memory");
  kernels.add_option("--rows", wanted.rows, "tokens (4096, on a GPU 16384)").between(1, 1 << 24);
  kernels.add_option("--columns", wanted.columns, "width of a token (1024, on a GPU 4096)")
      .between(1, 1 << 20);
  auto comm = app.add_subcommand(
      "comm",
      "calls over NCCL between GPUs, and over MPI on the host; the limit on one host is a copy");
  comm.add_option("--bytes", wanted.bytes, "bytes of a call").at_least(4).delimiter(',');
  comm.add_flag("--registered", wanted.registered,
                "the same with buffers that NCCL knows (parallelism.fsdp_register_buffers)");
  auto checkpoint = app.add_subcommand(
      "checkpoint", "saves and loads; the limit is a plain write or read of as many bytes");
  checkpoint.add_option("--folder", wanted.folder, "where to write; what is written is removed")
      .show_default();
  checkpoint.add_option("--mebibytes", wanted.mebibytes, "size of the checkpoint, of all ranks")
      .between(1, 1 << 24)
      .show_default();
  auto step = app.add_subcommand(
      "step",
      "steps of the job [FILE] [--section.key value ...] on random tokens; the limit is the\n"
      "estimated peak of each rank");
  step.add_option("config", job_file, "job file");
  step.add_option("--steps", steps, "after two that do not count").between(1, 10000).show_default();
  for (auto* command : {&gemm, &kernels, &comm}) {
    command->add_option("--job.device", wanted.device, "auto, cuda, cpu").show_default();
    command->add_flag("--job.share_device", wanted.shares_device, "ranks may share a GPU");
  }
  for (auto* command : {&gemm, &kernels, &comm, &checkpoint, &step})
    command->add_flag("--json", wanted.json, "print the results as JSON");
  app.require_subcommand();
  auto [own, job] = split(args);
  if (!app.parse(own)) return 0;
  if (step.parsed()) {
    if (!job_file.empty()) job.insert(job.begin(), job_file);
    return tessera::app::bench_step(job, steps, wanted.json);
  }
  if (kernels.parsed()) wanted.what = What::kernels;
  if (comm.parsed()) wanted.what = What::calls;
  if (checkpoint.parsed()) wanted.what = What::checkpoints;
  return measure(wanted);
}

const tessera::app::CommandRegistration registration{tessera::app::kBench.name,
                                                     tessera::app::kBench.summary, &run};

}  // namespace
