// SPDX-License-Identifier: Apache-2.0
// parallelism.pipeline_parallel_microbatch_size = "auto": the first steps of a run try the sizes
// that divide the batch.
#pragma once

#include <cstdint>
#include <vector>

namespace tessera::train {

/// Every step is a real one over the same global batch, so that nothing is lost but the time of the
/// slower sizes.
class MicrobatchTrial {
 public:
  /// Sizes in rising order, at least one.
  explicit MicrobatchTrial(std::vector<std::int64_t> sizes) : sizes_(std::move(sizes)) {}

  /// For the next step; the fastest, once done().
  std::int64_t rows() const { return done() ? best_ : sizes_[current_]; }
  /// The next size; 0 if there is none.
  std::int64_t next_rows() const { return current_ + 1 < sizes_.size() ? sizes_[current_ + 1] : 0; }
  bool done() const { return current_ == sizes_.size(); }
  /// Seconds of the step, the same on all ranks. The first step of a size does not count: it
  /// allocates. `next_fits`: memory would hold the next size; if not, that and all larger ones are
  /// omitted.
  void took(double seconds, bool next_fits);

 private:
  static constexpr int kCounted = 2;  ///< steps of a size, of which the fastest counts
  std::vector<std::int64_t> sizes_;
  std::size_t current_ = 0;
  int steps_ = 0;
  double seconds_ = 0, best_seconds_ = 0;
  std::int64_t best_ = 0;
};

}  // namespace tessera::train
