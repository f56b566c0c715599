// SPDX-License-Identifier: Apache-2.0
// Where the initial values of a job may come from: a checkpoint, or files of other programs.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/tensor_slice.hpp"
#include "tessera/checkpoint/slice_view.hpp"

namespace tessera::checkpoint {

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
  virtual void read(const TensorSlice& slice, void* data) const = 0;
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
