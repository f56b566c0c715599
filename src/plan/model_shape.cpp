// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan/model_shape.hpp"

#include <algorithm>

#include "tessera/base/error.hpp"
#include "tessera/config/flavor.hpp"
#include "tessera/hf/config.hpp"

namespace tessera::plan {

model::DecoderShape decoder_shape_of(const config::JobConfig& job, std::int64_t tokenizer_vocab) {
  model::DecoderShape shape =
      job.model.hf_config
          ? hf::read_config(*job.model.hf_config)
          : model::decoder_flavor(job.model.name, config::shape_flavor(job.model.flavor));
  if (!job.model.hf_config && job.model.flavor.starts_with("debugmodel"))
    shape.vocab = std::max(shape.vocab, tokenizer_vocab);
  const config::Model& m = job.model;
  require(
      shape.mixture || (!m.moe_load_balance_coeff && !m.moe_aux_loss_coeff && !m.moe_z_loss_coeff),
      ExitCode::usage,
      "{} has no mixture of experts; remove model.moe_load_balance_coeff, moe_aux_loss_coeff and "
      "moe_z_loss_coeff",
      shape.name);
  if (!shape.mixture) return shape;
  shape.mixture->balance_rate = m.moe_load_balance_coeff.value_or(shape.mixture->balance_rate);
  shape.mixture->auxiliary = m.moe_aux_loss_coeff.value_or(shape.mixture->auxiliary);
  shape.mixture->z = m.moe_z_loss_coeff.value_or(0);
  shape.mixture->routing.forced_even = job.debug.moe_force_load_balance;
  return shape;
}

void check_vocabulary(std::int64_t tokenizer_vocab, const std::string& model,
                      std::int64_t model_vocab) {
  require(tokenizer_vocab <= model_vocab, ExitCode::data,
          "the tokenizer has {} tokens, {} only {}; use the model's own tokenizer", tokenizer_vocab,
          model, model_vocab);
}

}  // namespace tessera::plan
