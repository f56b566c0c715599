// SPDX-License-Identifier: Apache-2.0
// Cells that sleep, so that two cores can time the pipelines of many ranks.
#pragma once

#include <span>

#include "tessera/model/model.hpp"
#include "tessera/parallel/linear.hpp"

namespace tessera::test {

/// When one rank slept.
struct NapLog {
  double first = 0, last = 0;  ///< by the machine's monotonic clock, seconds
  double slept = 0;            ///< as asked for
};

/// Seconds that a cell sleeps in forward, and in backward for the gradients of its input and of its
/// weights.
struct Nap {
  double forward = 0, input = 0, weight = 0;
  NapLog* log = nullptr;
  /// of the cell's stage: W is put off when it says so
  parallel::WeightGradients* gradients = nullptr;
};

/// Behind every cell i the nap that naps[i] tells when the cell runs.
void add_naps(model::Model& model, std::span<Nap> naps);

/// Cells that do nothing: units of one cell each, the first a lookup, the last gives logits.
model::Model empty_model(int cells);

}  // namespace tessera::test
