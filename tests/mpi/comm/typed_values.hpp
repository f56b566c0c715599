// Buffers of any dtype filled from doubles, for tests: small integers are exact in all of them.
#pragma once

#include <cstring>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/comm/buffer.hpp"

namespace tessera::test {

inline void put(std::byte* at, DType dtype, double x) {
  const auto set = [at](auto value) { std::memcpy(at, &value, sizeof(value)); };
  switch (dtype) {
    case DType::f64:
      return set(x);
    case DType::f32:
      return set(static_cast<float>(x));
    case DType::f16:
      return set(f32_to_f16(static_cast<float>(x)));
    case DType::bf16:
      return set(f32_to_bf16(static_cast<float>(x)));
    case DType::i64:
      return set(static_cast<std::int64_t>(x));
    case DType::i32:
      return set(static_cast<std::int32_t>(x));
    case DType::i16:
      return set(static_cast<std::int16_t>(x));
    case DType::i8:
      return set(static_cast<std::int8_t>(x));
    default:
      return set(static_cast<std::uint8_t>(x));
  }
}

template <class T>
T read(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

inline double get(const std::byte* at, DType dtype) {
  switch (dtype) {
    case DType::f64:
      return read<double>(at);
    case DType::f32:
      return read<float>(at);
    case DType::f16:
      return f16_to_f32(read<std::uint16_t>(at));
    case DType::bf16:
      return bf16_to_f32(read<std::uint16_t>(at));
    case DType::i64:
      return static_cast<double>(read<std::int64_t>(at));
    case DType::i32:
      return read<std::int32_t>(at);
    case DType::i16:
      return read<std::int16_t>(at);
    case DType::i8:
      return read<std::int8_t>(at);
    default:
      return read<std::uint8_t>(at);
  }
}

/// Host memory for `count` elements.
class Values {
 public:
  Values(DType dtype, std::int64_t count, double fill = 0)
      : dtype_(dtype), bytes_(static_cast<std::size_t>(count) * size_of(dtype)) {
    for (std::int64_t i = 0; i < count; ++i) set(i, fill);
  }
  void set(std::int64_t i, double x) { put(bytes_.data() + static_cast<std::size_t>(i) * size_of(dtype_), dtype_, x); }
  double operator[](std::int64_t i) const {
    return get(bytes_.data() + static_cast<std::size_t>(i) * size_of(dtype_), dtype_);
  }
  std::int64_t count() const { return static_cast<std::int64_t>(bytes_.size() / size_of(dtype_)); }
  comm::Buffer buffer() { return {bytes_.data(), count(), dtype_, comm::Memory::host}; }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  DType dtype_;
  std::vector<std::byte> bytes_;
};

inline constexpr DType kReducible[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64,
                                       DType::i32, DType::i16, DType::i8,  DType::u8};

}  // namespace tessera::test
