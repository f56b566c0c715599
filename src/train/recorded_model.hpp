// SPDX-License-Identifier: Apache-2.0
// The model that a checkpoint was saved from, where shapes of tensors do not show it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tessera/model_spec/model_spec.hpp"

namespace tessera::train {

/// See model::differences(); `extra`: a checkpoint's training state. "" if it says nothing of it,
/// as one of an earlier release.
std::string model_differences(const model::ModelSpec& model, std::string_view extra);

/// On the calling rank, where `differences` is not "": weights from `where` will compute otherwise
/// than they did.
void warn_of_other_model(const std::string& where, const std::string& differences);

/// On the calling rank, where the training state of the checkpoint in `where` names another
/// tokenizer than that of `tokenizer_hash`.
void warn_of_other_tokenizer(const std::string& where, std::string_view state,
                             std::uint64_t tokenizer_hash);

}  // namespace tessera::train
