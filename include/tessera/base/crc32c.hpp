// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli, reflected polynomial 0x82f63b78, as in RFC 3720 and SSE4.2).
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera {

/// The checksum of `bytes` bytes, continuing from `crc` (0 to begin): crc32c(crc32c(0, a), b) is
/// that of a followed by b. Uses the processor's instruction in three interleaved streams where
/// there is one.
std::uint32_t crc32c(std::uint32_t crc, const void* data, std::size_t bytes) noexcept;

/// The reference implementation: eight table look-ups for 8 bytes, any processor.
std::uint32_t crc32c_portable(std::uint32_t crc, const void* data, std::size_t bytes) noexcept;

}  // namespace tessera
