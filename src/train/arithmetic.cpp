// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/arithmetic.hpp"

#include <ATen/Context.h>

#include <cstdlib>
#include <string_view>

#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"
#include "tessera/parallel/ordered_sums.hpp"

namespace tessera::train {
namespace {

constexpr const char* kWorkspace = "CUBLAS_WORKSPACE_CONFIG";

/// cuBLAS reads it when it starts. With workspaces of other sizes it may choose other kernels from
/// call to call.
void fix_workspaces() {
  if (setenv(kWorkspace, ":4096:8", 0) != 0)
    fail(ExitCode::environment, "cannot set {}; unset some variables", kWorkspace);
  const std::string_view set = std::getenv(kWorkspace);
  require(set == ":4096:8" || set == ":16:8", ExitCode::environment,
          "{} is \"{}\", with which cuBLAS does not always give the same bits, and "
          "debug.deterministic = true; unset "
          "it, or set it to \":4096:8\" or \":16:8\"",
          kWorkspace, set);
}

void set_deterministic(bool warn_only) {
  fix_workspaces();
  at::Context& context = at::globalContext();
  context.setDeterministicAlgorithms(true, warn_only);
  // nothing here reads what nobody has written
  context.setDeterministicFillUninitializedMemory(false);
  context.setDeterministicCuDNN(true);
  context.setBenchmarkCuDNN(false);
}

void warn_of_keys_without_effect(const plan::ArithmeticPlan& plan) {
  const plan::ArithmeticPlan usual;
  const auto warn = [](bool differs, std::string_view key) {
    if (differs) log::warning("{} has no effect: the job trains on the host", key);
  };
  warn(plan.allow_tf32 != usual.allow_tf32, "training.allow_tf32");
  warn(plan.allow_bf16_reduced_precision_reduction != usual.allow_bf16_reduced_precision_reduction,
       "training.allow_bf16_reduced_precision_reduction");
  warn(plan.deterministic_warn_only, "debug.deterministic_warn_only");
}

}  // namespace

at::Device with_arithmetic(const plan::ArithmeticPlan& plan, at::Device device) {
  if (device.is_cpu()) {
    warn_of_keys_without_effect(plan);
    return device;
  }
  at::Context& context = at::globalContext();
  context.setAllowTF32CuBLAS(plan.allow_tf32);
  context.setAllowTF32CuDNN(plan.allow_tf32);
  context.setAllowBF16ReductionCuBLAS(plan.allow_bf16_reduced_precision_reduction);
  if (plan.deterministic) set_deterministic(plan.deterministic_warn_only);
  return device;
}

mesh::DeviceMesh::Decorate ordered_sums_of(const plan::ArithmeticPlan& plan, at::Device device,
                                           const mesh::DeviceMesh::Decorate& outer) {
  if (!plan.deterministic || device.is_cpu()) return outer;
  return [device, outer](std::unique_ptr<comm::Communicator> inner) {
    auto ordered = parallel::with_ordered_sums(std::move(inner), device);
    return outer ? outer(std::move(ordered)) : std::move(ordered);
  };
}

}  // namespace tessera::train
