// SPDX-License-Identifier: Apache-2.0
// The tensors of a checkpoint, gathered from the ranks: names, types, global shapes, and how much
// of each is held.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/tensor_slice.hpp"

namespace tessera::checkpoint {

/// Orders "layers.2" before "layers.10": neighbours in the model stay neighbours, so that the
/// tensors of a pipeline stage are few runs of numbers.
struct NaturalOrder {
  using is_transparent = void;
  bool operator()(std::string_view a, std::string_view b) const noexcept;
};

class TensorTable {
 public:
  struct Row {
    DType dtype = DType::f32;
    Shape shape;
    std::int64_t elements = 0;
  };

  /// Adds `elements` to the tensor's count. A type or shape that differs from an earlier one is
  /// remembered as conflict().
  void add(const std::string& name, const Row& row);
  void merge(const TensorTable& other);
  const std::map<std::string, Row, NaturalOrder>& rows() const { return rows_; }
  /// Empty, or what contradicts what.
  const std::string& conflict() const { return conflict_; }
  std::vector<TensorInfo> tensors() const;

  /// For messages between ranks of one program; merge_texts folds two of them.
  std::string to_text() const;
  static TensorTable from_text(const std::string& text);
  static std::string merge_texts(std::string a, const std::string& b);

 private:
  std::map<std::string, Row, NaturalOrder> rows_;
  std::string conflict_;
};

}  // namespace tessera::checkpoint
