// SPDX-License-Identifier: Apache-2.0
#include "recorded_model.hpp"

#include "tessera/base/log.hpp"
#include "tessera/data/tokenizer_record.hpp"

namespace tessera::train {

std::string model_differences(const model::ModelSpec& model, std::string_view extra) {
  return model::differences(model.properties, model::properties_in(extra));
}

void warn_of_other_model(const std::string& where, const std::string& differences) {
  if (!differences.empty())
    log::warning("the weights in {} are those of another model: {}", where, differences);
}

void warn_of_other_tokenizer(const std::string& where, std::string_view state,
                             std::uint64_t tokenizer_hash) {
  const std::string then = data::recorded_tokenizer(state),
                    now = data::tokenizer_record(tokenizer_hash);
  if (data::other_tokenizer(then, now))
    log::warning(
        "the weights in {} were trained with another tokenizer (hash {}) than this one (hash {}), "
        "whose ids stand for other texts; model.hf_assets_path selects the tokenizer",
        where, then, now);
}

}  // namespace tessera::train
