// SPDX-License-Identifier: Apache-2.0
// Tensor-parallel products whose tokens travel in chunks, so that a chunk is on its way while its
// neighbour is multiplied ("asynchronous tensor parallelism"; the decomposition of
// https://dl.acm.org/doi/10.1145/3567955.3567959).
//
// A chunk is the same range of rows of every rank's piece, so that collectives keep the order in
// which they add: the bits depend on the number of chunks alone, never on what overlapped.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <span>
#include <vector>

#include "tessera/comm/communicator.hpp"
#include "tessera/model/operations.hpp"

namespace tessera::parallel {

class WeightGradients;

struct TokenChunks {
  comm::Communicator* tp = nullptr;
  int count = 1;        ///< chunks of each rank's piece
  bool overlap = true;  ///< false: each transfer is waited for at once, for comparison
  /// may leave gradients of weights for later; must outlive every graph
  WeightGradients* gradients = nullptr;
};

/// piece [T / tp, in] on each rank, gathered over tokens, times each weight [out, in]: [T, out]
/// each. Keeps the piece; backward gathers the tokens again, overlapped with the products of the
/// input's gradient.
std::vector<at::Tensor> gathered_products(const at::Tensor& piece,
                                          std::span<const model::Weight> weights,
                                          const TokenChunks& chunks);

/// x [T, in] times weight [out, in], summed over the ranks and cut over tokens: [T / tp, out].
at::Tensor reduced_product(const at::Tensor& x, const model::Weight& weight,
                           const TokenChunks& chunks);

}  // namespace tessera::parallel
