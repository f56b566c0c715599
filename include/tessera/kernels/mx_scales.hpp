// SPDX-License-Identifier: Apache-2.0
// E8M0 scales of the MX formats (OCP Microscaling Formats 1.0): a byte e stands for 2^(e - 127),
// and 255 for NaN. An element is stored as q = the 8-bit number nearest to t 2^(127 - e), and read
// as q 2^(e - 127).
#pragma once

#include "tessera/kernels/tensor.hpp"

#include "tessera/base/dtype.hpp"
#include "tessera/kernels/scaled_bytes.hpp"

namespace tessera::kernels {

/// How a scale follows from the largest magnitude of its block. torchao's names.
enum class MxScale : std::uint8_t {
  floor,  ///< it brings the power of two below that to the type's: elements may exceed the type's
          ///< largest number, which they become
  rceil,  ///< the least that brings it to at most the type's largest number
};

/// Scales of blocks: bytes, and the factors for to_bytes() and from_bytes(), float32.
struct MxScales {
  at::Tensor bytes;   ///< E8M0, uint8
  at::Tensor stored;  ///< elements times this are stored
  at::Tensor read;    ///< and what is stored, divided by this, is read
};

/// For `largest`, see largest_magnitudes(), and `type`, f8e4m3 or f8e5m2. Where the scale is NaN or
/// 2^-127, numbers are stored as torchao stores them, which is not as they are read.
MxScales mx_scales(const at::Tensor& largest, DType type, MxScale how);

/// x [m, n] with such scales of its blocks.
ScaledBytes to_mx_bytes(const at::Tensor& x, DType type, MxScale how, ScaleBlock block,
                        ByteOrder order = ByteOrder::rows);

}  // namespace tessera::kernels
