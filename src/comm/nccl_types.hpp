// SPDX-License-Identifier: Apache-2.0
// NCCL's names of types and operations.
#pragma once

#include <nccl.h>

#include "tessera/base/error.hpp"
#include "tessera/comm/communicator.hpp"

namespace tessera::comm {

/// NCCL's name of a type that it can reduce. What is only moved travels as bytes.
inline ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return ncclFloat64;
    case DType::f32:
      return ncclFloat32;
    case DType::f16:
      return ncclFloat16;
    case DType::bf16:
      return ncclBfloat16;
    case DType::i64:
      return ncclInt64;
    case DType::i32:
      return ncclInt32;
    case DType::i8:
      return ncclInt8;
    case DType::u8:
      return ncclUint8;
    default:
      fail(ExitCode::usage, "NCCL has no reduction of {}; reduce bf16 or f32 instead",
           name_of(dtype));
  }
}

inline ncclRedOp_t operation_of(Op op) {
  return op == Op::sum ? ncclSum : op == Op::max ? ncclMax : ncclMin;
}

}  // namespace tessera::comm
