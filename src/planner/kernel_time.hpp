// SPDX-License-Identifier: Apache-2.0
// Seconds of one GPU kernel: a roofline of the machine's measured ceilings.
#pragma once

#include <cstdint>

#include "tessera/planner/machine.hpp"
#include "tessera/planner/stack.hpp"

namespace tessera::planner {

/// `count` equal products (rows x inner) (inner x columns), one grouped kernel if more than one.
struct Product {
  double rows = 0, columns = 0, inner = 0;
  double count = 1;
  /// Bytes for each element of a result that is added to memory; 0: bfloat16 is written once.
  double accumulate_bytes = 0;
};

/// Share of the ceiling that the best shape of tiles reaches: padding, and the last wave of tiles.
double wave_efficiency(const Machine& machine, std::int64_t rows, std::int64_t columns);

/// Moved by a product.
double product_bytes(Format format, const Product& product);

/// `rate`: of the ceiling, which the stack reaches.
double product_seconds(const Machine& machine, Format format, const Product& product, double rate);

struct AttentionWork {
  double flops = 0;  ///< of the forward, causal ones alone
  double seq = 0, head_dim = 0;
  bool backward = false;
};
double attention_seconds(const Machine& machine, AttentionKernel kernel, const AttentionWork& work,
                         double rate);

/// Bytes/s of kernels that memory bounds. A host's is measured as it is.
double stream_rate(const Machine& machine);
/// Of a kernel that memory bounds.
double stream_seconds(const Machine& machine, double bytes);

}  // namespace tessera::planner
