// SPDX-License-Identifier: Apache-2.0
// A sum whose bits depend on the summands alone: not on their order, the sharding, the number of
// threads or of ranks. All summands are added without rounding into one long fixed-point number
// (Kulisch's accumulator); rounding happens once, in value().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace at {
class Tensor;
}

namespace tessera::kernels {

class ExactSum {
 public:
  /// Digits of 32 bits in 64-bit words, least significant first, from 2^-1088 on; the last word
  /// counts non-finite summands.
  static constexpr std::size_t word_count = 69;

  /// Adds each value.
  void add(std::span<const float> values);
  void add(std::span<const double> values);
  void add(double value) { add(std::span<const double>(&value, 1)); }
  /// Adds the square of each value: exact for float; a double's square is rounded once, as value *
  /// value.
  void add_squares(std::span<const float> values);
  void add_squares(std::span<const double> values);
  void add_squares_bf16(std::span<const std::uint16_t> bits);
  /// Squares of all elements of a host or device tensor (f64, f32, bf16), in parallel.
  void add_squares(const at::Tensor& values);

  void merge(const ExactSum& other);

  /// The accumulator as integers: element-wise integer sums of several accumulators' words (an
  /// all_reduce with int64 sum, at most 2^30 of them) are the words of the merged sum. words()
  /// propagates the carries first.
  std::span<const std::int64_t, word_count> words();
  void set_words(std::span<const std::int64_t, word_count> words);

  /// The sum, rounded once to nearest even; NaN if any summand was not finite; infinity beyond the
  /// range of double.
  double value() const;
  /// How many summands were infinite or NaN.
  std::int64_t nonfinite_count() const { return words_[word_count - 1]; }

 private:
  template <class T, class Exact, class Term>
  void add_blocks(std::span<const T> values, Exact exact, const Term& term);
  void add_one(double value);
  void carry();

  std::array<std::int64_t, word_count> words_{};
  std::int64_t pending_ = 0;  ///< additions since the last carry()
};

}  // namespace tessera::kernels
