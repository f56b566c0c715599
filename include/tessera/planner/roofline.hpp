// SPDX-License-Identifier: Apache-2.0
// The kernels of a step between the limits of a machine.
#pragma once

#include <string>
#include <vector>

#include "tessera/planner/price.hpp"

namespace tessera::planner {

/// Of the forward of one microbatch.
struct Kernel {
  std::string name;
  double flops = 0, bytes = 0, seconds = 0;
};

/// What bounds kernels: FLOP/s and bytes/s.
struct Roofs {
  double peak = 0;     ///< of the data sheet
  double ceiling = 0;  ///< best measured matrix product
  double memory = 0;   ///< bandwidth of large copies
};
Roofs roofs_of(const Workload& work, const Machine& machine);

/// Of a block, of each kind that the model has, and of the output: matrix products as "in x out",
/// attention, and all kernels that memory bounds as one, with a FLOP for each byte.
std::vector<Kernel> kernels_of(const Workload& work, const Machine& machine, const Stack& stack);

}  // namespace tessera::planner
