// Llama 3 (https://arxiv.org/abs/2407.21783): the plain decoder.
#pragma once

#include "tessera/model/families.hpp"

namespace tessera::model {

using LlamaShape = DecoderShape;

inline Model make_llama(const LlamaShape& shape, std::int64_t max_positions, torch::ScalarType dtype,
                        torch::Device device = torch::kCPU) {
  return make_decoder(shape, max_positions, dtype, device);
}

}  // namespace tessera::model
