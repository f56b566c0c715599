// SPDX-License-Identifier: Apache-2.0
#include "reduction.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "half.hpp"

namespace tessera::sim::nccl {
namespace {

using comm::Bf16;
using comm::F16;

constexpr std::size_t kBlock = 512;  ///< elements that are summed at a time

template <class T>
struct Arithmetic {
  using Value = T;
  static Value load(T x) { return x; }
  static T store(Value x) { return x; }
};
template <>
struct Arithmetic<Bf16> {
  using Value = float;
  static float load(Bf16 x) { return comm::widen(x); }
  static Bf16 store(float x) { return comm::narrow_to_bf16(x); }
};
template <>
struct Arithmetic<F16> {
  using Value = float;
  static float load(F16 x) { return comm::widen(x); }
  static F16 store(float x) { return comm::narrow_to_f16(x); }
};

template <class V>
V combine(V a, V b, ncclRedOp_t op) {
  if constexpr (std::is_integral_v<V>) {
    using U = std::make_unsigned_t<V>;
    // products of narrow types must not become signed
    using Wide = std::common_type_t<U, unsigned>;
    if (op == ncclProd)
      return static_cast<V>(static_cast<Wide>(static_cast<U>(a)) * static_cast<U>(b));
    if (op == ncclMax) return std::max(a, b);
    if (op == ncclMin) return std::min(a, b);
    return static_cast<V>(static_cast<U>(a) + static_cast<U>(b));
  } else {
    if (op == ncclProd) return a * b;
    if (op == ncclMax) return std::fmax(a, b);
    if (op == ncclMin) return std::fmin(a, b);
    return a + b;
  }
}

/// One input element as it enters the reduction.
template <class T>
T entering(T x, ncclRedOp_t op, std::size_t ranks) {
  using A = Arithmetic<T>;
  using V = typename A::Value;
  if constexpr (std::is_floating_point_v<V>)
    if (op == ncclAvg) return A::store(A::load(x) * (V{1} / static_cast<V>(ranks)));
  return x;
}

template <class T>
T leaving(T x, ncclRedOp_t op, std::size_t ranks) {
  if constexpr (std::is_integral_v<T>)
    if (op == ncclAvg) return static_cast<T>(x / static_cast<T>(ranks));
  return x;
}

template <class T>
T element(const std::byte* from, std::size_t i) {
  T x;
  std::memcpy(&x, from + i * sizeof(T), sizeof(T));
  return x;
}

template <class T>
void reduce_block(std::span<const std::byte* const> in, std::byte* out, std::size_t first,
                  std::size_t n, ncclRedOp_t op) {
  using A = Arithmetic<T>;
  std::array<T, kBlock> sum;
  for (std::size_t i = 0; i < n; ++i)
    sum[i] = entering(element<T>(in[0], first + i), op, in.size());
  for (std::size_t r = 1; r < in.size(); ++r)
    for (std::size_t i = 0; i < n; ++i)
      sum[i] = A::store(combine(
          A::load(sum[i]), A::load(entering(element<T>(in[r], first + i), op, in.size())), op));
  for (std::size_t i = 0; i < n; ++i) sum[i] = leaving(sum[i], op, in.size());
  std::memcpy(out + first * sizeof(T), sum.data(), n * sizeof(T));
}

template <class T>
void reduce_as(std::span<const std::byte* const> in, std::byte* out, std::size_t count,
               ncclRedOp_t op) {
  for (std::size_t first = 0; first < count; first += kBlock)
    reduce_block<T>(in, out, first, std::min(kBlock, count - first), op);
}

}  // namespace

bool can_reduce(ncclDataType_t type) { return type >= 0 && type < ncclFloat8e4m3; }

void reduce(std::span<const std::byte* const> in, std::byte* out, std::size_t count,
            ncclDataType_t type, ncclRedOp_t op) {
  switch (type) {
    case ncclInt8:
      return reduce_as<std::int8_t>(in, out, count, op);
    case ncclUint8:
      return reduce_as<std::uint8_t>(in, out, count, op);
    case ncclInt32:
      return reduce_as<std::int32_t>(in, out, count, op);
    case ncclUint32:
      return reduce_as<std::uint32_t>(in, out, count, op);
    case ncclInt64:
      return reduce_as<std::int64_t>(in, out, count, op);
    case ncclUint64:
      return reduce_as<std::uint64_t>(in, out, count, op);
    case ncclFloat16:
      return reduce_as<F16>(in, out, count, op);
    case ncclFloat32:
      return reduce_as<float>(in, out, count, op);
    case ncclFloat64:
      return reduce_as<double>(in, out, count, op);
    case ncclBfloat16:
      return reduce_as<Bf16>(in, out, count, op);
    default:
      return;
  }
}

}  // namespace tessera::sim::nccl
