// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/tensor_buffer.hpp"

#include "tessera/base/error.hpp"
#include "tessera/kernels/shapes.hpp"

namespace tessera::parallel {

DType dtype_of(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return DType::f64;
    case at::kFloat:
      return DType::f32;
    case at::kHalf:
      return DType::f16;
    case at::kBFloat16:
      return DType::bf16;
    case at::kLong:
      return DType::i64;
    case at::kInt:
      return DType::i32;
    case at::kByte:
      return DType::u8;
    default:
      contract_violated("dtype", __FILE__, __LINE__, "a tensor type that no communicator carries");
  }
}

at::ScalarType scalar_type_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return at::kDouble;
    case DType::f32:
      return at::kFloat;
    case DType::f16:
      return at::kHalf;
    case DType::bf16:
      return at::kBFloat16;
    case DType::i64:
      return at::kLong;
    case DType::i32:
      return at::kInt;
    case DType::u8:
      return at::kByte;
    default:
      contract_violated("dtype", __FILE__, __LINE__, "an element type that no tensor here has");
  }
}

comm::Memory memory_of(at::Device device) {
  if (kernels::shapes_alone(device)) return comm::Memory::none;
  return device.is_cpu() ? comm::Memory::host : comm::Memory::device;
}

comm::Buffer buffer_of(const at::Tensor& tensor) {
  TESSERA_EXPECT(tensor.is_contiguous(), "only contiguous tensors are sent");
  return {tensor.data_ptr(), tensor.numel(), dtype_of(tensor.scalar_type()),
          memory_of(tensor.device())};
}

}  // namespace tessera::parallel
