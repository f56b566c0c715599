#include "tessera/parallel/tensor_buffer.hpp"

#include "tessera/base/error.hpp"

namespace tessera::parallel {

DType dtype_of(torch::ScalarType type) {
  switch (type) {
    case torch::kFloat64: return DType::f64;
    case torch::kFloat32: return DType::f32;
    case torch::kFloat16: return DType::f16;
    case torch::kBFloat16: return DType::bf16;
    case torch::kInt64: return DType::i64;
    case torch::kInt32: return DType::i32;
    case torch::kUInt8: return DType::u8;
    default: contract_violated("dtype", __FILE__, __LINE__, "a tensor type that no communicator carries");
  }
}

torch::ScalarType scalar_type_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return torch::kFloat64;
    case DType::f32: return torch::kFloat32;
    case DType::f16: return torch::kFloat16;
    case DType::bf16: return torch::kBFloat16;
    case DType::i64: return torch::kInt64;
    case DType::i32: return torch::kInt32;
    case DType::u8: return torch::kUInt8;
    default: contract_violated("dtype", __FILE__, __LINE__, "an element type that no tensor here has");
  }
}

comm::Buffer buffer_of(const torch::Tensor& tensor) {
  TESSERA_EXPECT(tensor.is_contiguous(), "only contiguous tensors are sent");
  return {tensor.data_ptr(), tensor.numel(), dtype_of(tensor.scalar_type()),
          tensor.is_cuda() ? comm::Memory::device : comm::Memory::host};
}

}  // namespace tessera::parallel
