#include "tessera/kernels/exact_sum.hpp"

#include <torch/torch.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "backend.hpp"
#include "host/row_functions.hpp"
#include "tessera/base/dtype.hpp"

namespace tessera::kernels {
namespace {

constexpr std::size_t digit_count = ExactSum::word_count - 1;
constexpr int lowest_exponent = -1088;  // of the first digit's lowest bit
constexpr std::size_t block_size = 1024;
/// Each addition moves a digit by less than 2^32, so that many fit into 63 bits with room for one merge.
constexpr std::int64_t additions_before_carry = std::int64_t{1} << 28;

using Words = std::array<std::int64_t, ExactSum::word_count>;

/// Brings every digit but the last, which keeps the sign, into [0, 2^32).
void carry_digits(Words& words) {
  for (std::size_t i = 0; i + 1 < digit_count; ++i) {
    const std::int64_t over = words[i] >> 32;
    words[i] -= over * (std::int64_t{1} << 32);
    words[i + 1] += over;
  }
}

/// Rounds digits in [0, 2^32) to nearest even: the leading 64 bits, with a sticky last bit for all below, round once more
/// in the conversion to double, which is then the only rounding.
double round_digits(const Words& words) {
  std::size_t top = digit_count;
  while (top > 0 && words[top - 1] == 0) --top;
  if (top == 0) return 0.0;
  const auto digit = [&](std::size_t below) -> unsigned __int128 {
    return top >= below + 1 ? static_cast<std::uint64_t>(words[top - 1 - below]) : 0;
  };
  unsigned __int128 head = (digit(0) << 64) | (digit(1) << 32) | digit(2);
  bool sticky = false;
  for (std::size_t i = 0; i + 3 < top; ++i) sticky |= words[i] != 0;
  const int shift = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(head >> 64)));
  sticky |= (head & ((static_cast<unsigned __int128>(1) << shift) - 1)) != 0;
  const std::uint64_t leading = static_cast<std::uint64_t>(head >> shift) | (sticky ? 1 : 0);
  return std::ldexp(static_cast<double>(leading), lowest_exponent + 32 * (static_cast<int>(top) - 3) + shift);
}

}  // namespace

template <class T, class Exact, class Term> void ExactSum::add_blocks(std::span<const T> values, Exact exact, const Term& term) {
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
  add_blocks(values, host_functions().f32.exact_values, [](float v) { return static_cast<double>(v); });
}

void ExactSum::add(std::span<const double> values) {
  add_blocks(values, host_functions().f64.exact_values, [](double v) { return v; });
}

void ExactSum::add_squares(std::span<const float> values) {
  add_blocks(values, host_functions().f32.exact_squares, [](float v) { return static_cast<double>(v) * v; });
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
  const at::NoGradGuard no_grad;
  if (values.numel() > 0) backend_of(values).exact_squares(values.contiguous(), *this);
}

void ExactSum::merge(const ExactSum& other) {
  carry();
  Words theirs = other.words_;
  carry_digits(theirs);
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
  carry_digits(words);
  const bool negative = words[digit_count - 1] < 0;
  if (negative) {
    for (std::size_t i = 0; i < digit_count; ++i) words[i] = -words[i];
    carry_digits(words);
  }
  return negative ? -round_digits(words) : round_digits(words);
}

/// value = +-mantissa * 2^(exponent - 1075): its bits go to the three digits that they straddle.
void ExactSum::add_one(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff);
  if (exponent == 0x7ff) {
    ++words_[word_count - 1];
    return;
  }
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
  const std::uint64_t mantissa = exponent == 0 ? fraction : fraction | (std::uint64_t{1} << 52);
  const int position = std::max(exponent, 1) - 1075 - lowest_exponent;
  const unsigned __int128 placed = static_cast<unsigned __int128>(mantissa) << (position % 32);
  const std::int64_t sign = bits >> 63 ? -1 : 1;
  for (int k = 0; k < 3; ++k)
    words_[position / 32 + k] += sign * static_cast<std::int64_t>(static_cast<std::uint32_t>(placed >> (32 * k)));
  if (++pending_ >= additions_before_carry) carry();
}

void ExactSum::carry() {
  carry_digits(words_);
  pending_ = 0;
}

}  // namespace tessera::kernels
