// SPDX-License-Identifier: Apache-2.0
// Where the initial values of a job may come from: a checkpoint, or files of other programs.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/tensor_slice.hpp"

namespace tessera::checkpoint {

/// A box of a global tensor in this rank's host memory, contiguous and row-major.
/// `slice.name` is the dataset's path: "model/<fqn>", "optimizer/exp_avg/<fqn>". An extent of 0 is
/// an empty box. On save, `replicas` ranks hold this same box, and this rank is number `replica` of
/// them: each of them writes a part of the rows (of a small box: one of them writes it), so that
/// bytes balance without any exchange. On load, `slice.dtype` is the type wanted; floating-point
/// types convert into each other.
struct SliceView {
  TensorSlice slice;
  void* data = nullptr;
  int replica = 0;
  int replicas = 1;
};

/// Named tensors in files, of which boxes are read into memory. load() of load.hpp decides which.
class WeightSource {
 public:
  virtual ~WeightSource() = default;

  /// For messages: "checkpoint outputs/checkpoint/step-00000010".
  virtual std::string description() const = 0;
  /// The kind of Error when the tensors are not those that a job wants.
  virtual ExitCode misfit_kind() const = 0;
  virtual const std::vector<TensorInfo>& tensors() const = 0;
  /// Null when there is none of that name.
  virtual const TensorInfo* find(std::string_view name) const = 0;
  /// "" when a tensor of this name, type and shape can be filled. Else, in a few words, what is
  /// there instead.
  virtual std::string misfit(const TensorInfo& wanted) const;
  /// Whether the tensor of the slice can be filled.
  bool fits(const TensorSlice& slice) const {
    return misfit({slice.name, slice.dtype, slice.global_shape}).empty();
  }

  /// Local: fills one box of a tensor that fits. Throws Error when it does not, or for damage.
  virtual void read(const TensorSlice& box, void* data) const = 0;
  /// Local: the same for many.
  virtual void fill(std::span<const SliceView> wanted) const;

 protected:
  WeightSource() = default;
  WeightSource(const WeightSource&) = default;
  WeightSource(WeightSource&&) = default;
  WeightSource& operator=(const WeightSource&) = default;
  WeightSource& operator=(WeightSource&&) = default;
};

}  // namespace tessera::checkpoint
