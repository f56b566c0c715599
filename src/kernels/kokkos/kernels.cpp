// SPDX-License-Identifier: Apache-2.0
// The host kernels in Kokkos.
#define TESSERA_ISA_NAMESPACE kokkos
#include "kokkos/kernels.hpp"

#include "kokkos/block_rows.hpp"
#include "kokkos/element_rows.hpp"
#include "kokkos/flat_rows.hpp"
#include "kokkos/softmax_rows.hpp"

#include "host/attention_shape.hpp"

namespace tessera::kernels::kokkos {

/// None: LibTorch's flash attention serves.
template <class T>
constexpr AttentionFunctions<T> attention_functions() {
  return {};
}

}  // namespace tessera::kernels::kokkos

#include "host/table.inl"

namespace tessera::kernels::kokkos {
namespace {

/// Kokkos 3.4 allots the scratch that all threads share at the first launch of each kind. Launching
/// here, on one thread, leaves nothing to allot to the launches of several.
void start() {
  if (!Kokkos::is_initialized()) Kokkos::initialize();
  double largest = 0;
  sum_of_squares(&largest, 1);
  largest_of(
      1, KOKKOS_LAMBDA(std::int64_t i) { return i; });
  for_rows(1, KOKKOS_LAMBDA(const Team&, std::int64_t){});
}

}  // namespace

const HostFunctions& started_functions() {
  static const bool started = (start(), true);
  static_cast<void>(started);
  return host_functions;
}

std::string description() {
  return std::to_string(KOKKOS_VERSION / 10000) + "." + std::to_string(KOKKOS_VERSION / 100 % 100) +
         "." + std::to_string(KOKKOS_VERSION % 100) + " (" + Space::name() + ")";
}

}  // namespace tessera::kernels::kokkos
