// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/host_kernels.hpp"

#include <atomic>
#include <cstdlib>

#include "host/row_functions.hpp"
#include "kokkos/kernels.hpp"
#include "tessera/base/error.hpp"
#include "tessera/kernels/instruction_set.hpp"

namespace tessera::kernels {
namespace {

std::atomic<const HostFunctions*> chosen{nullptr};

const HostFunctions& native_functions() {
  const HostFunctions* functions = vector_functions();
  require(functions != nullptr, ExitCode::environment,
          "kernels.backend = native: Tessera has no vector kernels for this processor; use auto or "
          "kokkos");
  return *functions;
}

const HostFunctions& auto_functions() {
  const char* named = std::getenv("TESSERA_KERNELS");
  if (named == nullptr)
    return vector_functions() != nullptr ? native_functions() : kokkos::started_functions();
  const std::string_view name = named;
  require(name == "kokkos" || name == "native", ExitCode::usage,
          "TESSERA_KERNELS={} names no kernels; use native or kokkos", name);
  return name == "kokkos" ? kokkos::started_functions() : native_functions();
}

}  // namespace

void choose_host_kernels(std::string_view wanted) {
  require(wanted == "auto" || wanted == "kokkos" || wanted == "native", ExitCode::usage,
          "kernels.backend = {} names no kernels; use auto, kokkos or native", wanted);
  chosen = wanted == "auto"     ? &auto_functions()
           : wanted == "kokkos" ? &kokkos::started_functions()
                                : &native_functions();
}

const HostFunctions& host_functions() {
  const HostFunctions* functions = chosen.load(std::memory_order_acquire);
  if (functions != nullptr) return *functions;
  choose_host_kernels("auto");
  return *chosen.load();
}

std::string host_kernels() {
  if (&host_functions() == &kokkos::host_functions) return "kokkos " + kokkos::description();
  return std::string(name_of(instruction_set()));
}

std::string kokkos_description() { return kokkos::description(); }

std::string_view name_of(InstructionSet set) noexcept {
  switch (set) {
    case InstructionSet::none:
      return "none";
    case InstructionSet::sse:
      return "sse";
    case InstructionSet::avx2:
      return "avx2";
    case InstructionSet::avx512:
      return "avx512";
  }
  return "";
}

}  // namespace tessera::kernels
