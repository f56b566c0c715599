// SPDX-License-Identifier: Apache-2.0
// Losses of a batch or of many, summed exactly: as a whole and for each part of a mixture.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tessera/comm/communicator.hpp"
#include "tessera/data/sample_source.hpp"
#include "tessera/kernels/exact_sum.hpp"
#include "tessera/train/batch.hpp"
#include "tessera/train/step_votes.hpp"

namespace tessera::train {

/// All values behind each other, such as the losses of a step's microbatches; undefined where there
/// are none.
at::Tensor joined(const std::vector<at::Tensor>& tensors);

class LossSums {
 public:
  /// `source` names the parts, and must outlive this.
  explicit LossSums(const data::SampleSource& source);

  /// Losses of this rank's positions of a step, on any device: of the rows that begin with sample
  /// `first`, in their order; undefined where there are none. Samples from `end` on do not count.
  /// Call it where these are the rank's alone: once among the ranks of tp.
  void add(const Rows& rows, const plan::BatchPlan& plan, const at::Tensor& token_losses,
           std::int64_t first, std::int64_t end = std::numeric_limits<std::int64_t>::max());
  /// Collective: the sums over all ranks. The votes travel with them; those of all ranks are
  /// returned.
  StepVotes reduce(comm::Communicator& control, const StepVotes& votes = {});

  std::int64_t tokens() const;  ///< whose labels count
  double loss() const;          ///< mean over them; NaN without any
  /// Mean loss of each part, by name; NaN for one without tokens. Empty for a source of one part.
  std::vector<std::pair<std::string, double>> parts() const;

 private:
  static double mean(const kernels::ExactSum& sum, std::int64_t tokens);
  std::size_t part_of(std::int64_t sample) const;

  const data::SampleSource& source_;
  std::vector<std::string> names_;
  std::vector<kernels::ExactSum> losses_;
  std::vector<std::int64_t> tokens_;
};

}  // namespace tessera::train
