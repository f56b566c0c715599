// SPDX-License-Identifier: Apache-2.0
// The shape of a job's model.
#pragma once

#include <cstdint>
#include <string>

#include "tessera/config/job_config.hpp"
#include "tessera/model_spec/families.hpp"

namespace tessera::plan {

/// Shape of model.hf_config, or of name and flavor, with what the job says of mixtures; a debug
/// model takes the larger of its vocabulary and the tokenizer's.
model::DecoderShape decoder_shape_of(const config::JobConfig& job, std::int64_t tokenizer_vocab);

/// Throws Error(data) when the tokenizer's vocabulary is larger than the model's.
void check_vocabulary(std::int64_t tokenizer_vocab, const std::string& model,
                      std::int64_t model_vocab);

}  // namespace tessera::plan
