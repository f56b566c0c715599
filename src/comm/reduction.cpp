#include "reduction.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "half.hpp"
#include "tessera/base/error.hpp"

namespace tessera::comm {
namespace {

constexpr std::int64_t kBlock = 1024;  // elements: the accumulators of all levels stay in the L1 cache

template <class T>
constexpr bool is_half = std::is_same_v<T, Bf16> || std::is_same_v<T, F16>;
/// The type in which elements of T are joined.
template <class T>
using Wide = std::conditional_t<is_half<T>, float, T>;

template <class T>
inline Wide<T> load(const T& x) {
  if constexpr (is_half<T>) {
    return widen(x);
  } else {
    return x;
  }
}

template <class T>
inline T store(Wide<T> x) {
  if constexpr (std::is_same_v<T, Bf16>) {
    return narrow_to_bf16(x);
  } else if constexpr (std::is_same_v<T, F16>) {
    return narrow_to_f16(x);
  } else {
    return x;
  }
}

struct Sum {
  template <class W>
  static W join(W a, W b) {
    if constexpr (std::is_integral_v<W>) {  // wraps, as the unsigned sum does
      using U = std::make_unsigned_t<W>;
      return static_cast<W>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
    } else {
      return a + b;
    }
  }
};
struct Max {
  template <class W>
  static W join(W a, W b) {
    return (a > b) | (a != a) ? a : b;
  }
};
struct Min {
  template <class W>
  static W join(W a, W b) {
    return (a < b) | (a != a) ? a : b;
  }
};

/// Folds ranks [low, high) of elements [first, first + n) into `sum`.
template <class T, class Join>
void fold(std::span<const void* const> parts, int low, int high, std::int64_t first, std::int64_t n, Wide<T>* __restrict__ sum) {
  const auto part = [&](int r) { return static_cast<const T*>(parts[static_cast<std::size_t>(r)]) + first; };
  const int ranks = high - low;
  if (ranks == 1) {
    const T* a = part(low);
    for (std::int64_t i = 0; i < n; ++i) sum[i] = load(a[i]);
    return;
  }
  if (ranks == 2) {
    const T *a = part(low), *b = part(low + 1);
    for (std::int64_t i = 0; i < n; ++i) sum[i] = Join::join(load(a[i]), load(b[i]));
    return;
  }
  const int middle = low + static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks - 1)));
  fold<T, Join>(parts, low, middle, first, n, sum);
  alignas(64) Wide<T> right[kBlock];
  fold<T, Join>(parts, middle, high, first, n, right);
  for (std::int64_t i = 0; i < n; ++i) sum[i] = Join::join(sum[i], right[i]);
}

template <class T, class Join>
void reduce(std::span<const void* const> parts, void* out, std::int64_t count) {
  alignas(64) Wide<T> sum[kBlock];
  for (std::int64_t first = 0; first < count; first += kBlock) {
    const std::int64_t n = std::min(kBlock, count - first);
    fold<T, Join>(parts, 0, static_cast<int>(parts.size()), first, n, sum);
    T* target = static_cast<T*>(out) + first;
    for (std::int64_t i = 0; i < n; ++i) target[i] = store<T>(sum[i]);
  }
}

template <class T>
void reduce_as(std::span<const void* const> parts, void* out, std::int64_t count, Op op) {
  switch (op) {
    case Op::sum: return reduce<T, Sum>(parts, out, count);
    case Op::max: return reduce<T, Max>(parts, out, count);
    case Op::min: return reduce<T, Min>(parts, out, count);
  }
}

}  // namespace

void reduce_parts(std::span<const void* const> parts, void* out, std::int64_t count, DType dtype, Op op) {
  switch (dtype) {
    case DType::f64: return reduce_as<double>(parts, out, count, op);
    case DType::f32: return reduce_as<float>(parts, out, count, op);
    case DType::f16: return reduce_as<F16>(parts, out, count, op);
    case DType::bf16: return reduce_as<Bf16>(parts, out, count, op);
    case DType::i64: return reduce_as<std::int64_t>(parts, out, count, op);
    case DType::i32: return reduce_as<std::int32_t>(parts, out, count, op);
    case DType::i16: return reduce_as<std::int16_t>(parts, out, count, op);
    case DType::i8: return reduce_as<std::int8_t>(parts, out, count, op);
    case DType::u8: return reduce_as<std::uint8_t>(parts, out, count, op);
    default: fail(ExitCode::usage, "{} has no reduction; reduce bf16 or f32 instead", name_of(dtype));
  }
}

}  // namespace tessera::comm
