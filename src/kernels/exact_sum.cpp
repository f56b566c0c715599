// SPDX-License-Identifier: Apache-2.0
#include "tessera/kernels/exact_sum.hpp"

#include "tessera/kernels/tensor.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "backend.hpp"
#include "fixed_point.hpp"
#include "host/row_functions.hpp"
#include "tessera/base/dtype.hpp"
#include "tessera/kernels/square_sums.hpp"

namespace tessera::kernels {
namespace {

using fixed_point::digit_count;

constexpr std::size_t block_size = 1024;
/// Each addition moves a digit by less than 2^32, so that many fit into 63 bits, with space for one
/// merge.
constexpr std::int64_t additions_before_carry = std::int64_t{1} << 28;
static_assert(ExactSum::word_count == fixed_point::word_count);

using Words = std::array<std::int64_t, ExactSum::word_count>;

/// Rounds digits in [0, 2^32) to nearest even: the leading 64 bits, with a sticky last bit for all
/// below, round again in the conversion to double, which is then the only rounding.
double round_digits(const Words& words) {
  int top = digit_count;
  while (top > 0 && words[top - 1] == 0) --top;
  if (top == 0) return 0.0;
  const auto digit = [&](int below) -> unsigned __int128 {
    return top >= below + 1 ? static_cast<std::uint64_t>(words[top - 1 - below]) : 0;
  };
  unsigned __int128 head = (digit(0) << 64) | (digit(1) << 32) | digit(2);
  bool sticky = false;
  for (int i = 0; i + 3 < top; ++i) sticky |= words[i] != 0;
  const int shift = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(head >> 64)));
  sticky |= (head & ((static_cast<unsigned __int128>(1) << shift) - 1)) != 0;
  const std::uint64_t leading = static_cast<std::uint64_t>(head >> shift) | (sticky ? 1 : 0);
  return std::ldexp(static_cast<double>(leading),
                    fixed_point::lowest_exponent + 32 * (top - 3) + shift);
}

}  // namespace

template <class T, class Exact, class Term>
void ExactSum::add_blocks(std::span<const T> values, Exact exact, const Term& term) {
  for (std::size_t first = 0; first < values.size(); first += block_size) {
    const auto block = values.subspan(first, std::min(block_size, values.size() - first));
    double sums[3];
    if (exact(block.data(), static_cast<std::int64_t>(block.size()), sums))
      for (const double sum : sums) add_one(sum);
    else
      for (const T value : block) add_one(term(value));
  }
}

void ExactSum::add(std::span<const float> values) {
  add_blocks(values, host_functions().f32.exact_values,
             [](float v) { return static_cast<double>(v); });
}

void ExactSum::add(std::span<const double> values) {
  add_blocks(values, host_functions().f64.exact_values, [](double v) { return v; });
}

void ExactSum::add_squares(std::span<const float> values) {
  add_blocks(values, host_functions().f32.exact_squares,
             [](float v) { return static_cast<double>(v) * v; });
}

void ExactSum::add_squares(std::span<const double> values) {
  add_blocks(values, host_functions().f64.exact_squares, [](double v) { return v * v; });
}

void ExactSum::add_squares_bf16(std::span<const std::uint16_t> bits) {
  const std::span values(reinterpret_cast<const Bf16*>(bits.data()), bits.size());
  add_blocks(values, host_functions().bf16.exact_squares, [](Bf16 v) {
    const double wide = bf16_to_f32(v.bits);
    return wide * wide;
  });
}

void ExactSum::add_squares(const at::Tensor& values) {
  if (values.numel() == 0) return;
  const at::Tensor words = exact_squares(values).to(at::kCPU);
  ExactSum part;
  part.set_words(
      std::span<const std::int64_t, word_count>(words.const_data_ptr<std::int64_t>(), word_count));
  merge(part);
}

void ExactSum::merge(const ExactSum& other) {
  carry();
  Words theirs = other.words_;
  fixed_point::carry(theirs.data());
  for (std::size_t i = 0; i < word_count; ++i) words_[i] += theirs[i];
  carry();
}

std::span<const std::int64_t, ExactSum::word_count> ExactSum::words() {
  carry();
  return words_;
}

void ExactSum::set_words(std::span<const std::int64_t, word_count> words) {
  std::copy(words.begin(), words.end(), words_.begin());
  carry();
}

double ExactSum::value() const {
  if (nonfinite_count() != 0) return std::numeric_limits<double>::quiet_NaN();
  Words words = words_;
  fixed_point::carry(words.data());
  const bool negative = words[digit_count - 1] < 0;
  if (negative) {
    for (int i = 0; i < digit_count; ++i) words[i] = -words[i];
    fixed_point::carry(words.data());
  }
  return negative ? -round_digits(words) : round_digits(words);
}

void ExactSum::add_one(double value) {
  fixed_point::add(value, [this](int word, std::int64_t amount) { words_[word] += amount; });
  if (++pending_ >= additions_before_carry) carry();
}

void ExactSum::carry() {
  fixed_point::carry(words_.data());
  pending_ = 0;
}

}  // namespace tessera::kernels
