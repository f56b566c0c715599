// SPDX-License-Identifier: Apache-2.0
// A state whose every value tells its step, so that a mix of two checkpoints cannot go unseen.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/shard.hpp"
#include "tessera/checkpoint/slice_view.hpp"

namespace tessera::checkpoint {

/// What one of `ranks` ranks holds: two tensors cut by rows and one that all of them have.
class Stepped {
 public:
  explicit Stepped(std::int64_t step, int rank = 0, int ranks = 1, std::int64_t rows = 7) {
    const Range range = chunk_of(rows, ranks, rank);
    add({"model/w", DType::f32, {rows, 5}, {{range.begin, 0}, {range.size, 5}}}, 0, 1);
    add({"optimizer/exp_avg/w", DType::f32, {rows, 5}, {{range.begin, 0}, {range.size, 5}}}, 0, 1);
    add({"model/b", DType::f32, {3}, {{0}, {3}}}, rank, ranks);
    set(step);
  }
  Stepped(const Stepped&) = delete;
  const std::vector<SliceView>& views() const { return views_; }

  void set(std::int64_t step) {
    for (std::vector<float>& values : values_)
      std::fill(values.begin(), values.end(), static_cast<float>(step));
  }
  /// The one step that all values are of, or nothing.
  std::optional<std::int64_t> step() const {
    std::optional<float> step;
    for (const std::vector<float>& values : values_)
      for (const float value : values) {
        if (step && *step != value) return std::nullopt;
        step = value;
      }
    return static_cast<std::int64_t>(step.value_or(-1));
  }

 private:
  void add(TensorSlice slice, int replica, int replicas) {
    values_.emplace_back(static_cast<std::size_t>(element_count(slice.box)));
    views_.push_back({std::move(slice), values_.back().data(), replica, replicas});
  }
  std::vector<std::vector<float>> values_;
  std::vector<SliceView> views_;
};

}  // namespace tessera::checkpoint
