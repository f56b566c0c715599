// SPDX-License-Identifier: Apache-2.0
// Buffers of any dtype filled from doubles, for tests: small integers are exact in all of them.
#pragma once

#include <cstring>
#include <optional>
#include <vector>

#include "device_values.hpp"
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

/// `count` elements, to read and write on the host, and as a buffer in host or device memory. A
/// buffer in device memory is valid until the next set(); reading an element waits for the default
/// stream.
class Values {
 public:
  Values(DType dtype, std::int64_t count, double fill = 0, comm::Memory memory = comm::Memory::host)
      : dtype_(dtype), memory_(memory), bytes_(static_cast<std::size_t>(count) * size_of(dtype)) {
    for (std::int64_t i = 0; i < count; ++i) set(i, fill);
  }
  Values(const Values& other)
      : dtype_(other.dtype_), memory_(other.memory_), bytes_(other.bytes()) {}
  Values(Values&&) = default;
  Values& operator=(const Values&) = delete;

  void set(std::int64_t i, double x) {
    fetch();
    is_sent_ = false;
    put(bytes_.data() + static_cast<std::size_t>(i) * size_of(dtype_), dtype_, x);
  }
  double operator[](std::int64_t i) const {
    fetch();
    return get(bytes_.data() + static_cast<std::size_t>(i) * size_of(dtype_), dtype_);
  }
  std::int64_t count() const { return static_cast<std::int64_t>(bytes_.size() / size_of(dtype_)); }
  comm::Buffer buffer() {
    if (memory_ == comm::Memory::host) return {bytes_.data(), count(), dtype_, memory_};
    send();
    return {device_->data(), count(), dtype_, memory_};
  }
  const std::vector<std::byte>& bytes() const {
    fetch();
    return bytes_;
  }

 private:
  void send() {
    if (!device_) device_.emplace(bytes_.size());
    if (!is_sent_) device_->upload(bytes_.data());
    is_sent_ = true;
    is_fetched_ = false;
  }
  void fetch() const {
    if (!is_fetched_) device_->download(bytes_.data());
    is_fetched_ = true;
  }
  DType dtype_;
  comm::Memory memory_;
  mutable std::vector<std::byte> bytes_;
  std::optional<DeviceBytes> device_;
  bool is_sent_ = false;            ///< the device has what the host has written
  mutable bool is_fetched_ = true;  ///< the host has what operations may have written
};

inline constexpr DType kReducible[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64,
                                       DType::i32, DType::i16, DType::i8,  DType::u8};

}  // namespace tessera::test
