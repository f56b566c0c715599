// SPDX-License-Identifier: Apache-2.0
// src/kernels/cuda/launch_kernel.cuh for the simulated GPU: the include path puts this one first.
#pragma once

#include <chrono>

#include "cuda/operand.hpp"
#include "cuda_on_host.hpp"
#include "issue_kernel.hpp"

namespace tessera::kernels::device {

inline std::uint64_t nanoseconds() {
  return static_cast<std::uint64_t>(
      std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

template <int least_blocks, class Body>
void launch_kernel(const Launch& launch, const Body& body) {
  sim::issue_kernel(launch,
                    [body](std::int64_t block, unsigned char* shared) { body(block, shared); });
}

}  // namespace tessera::kernels::device
