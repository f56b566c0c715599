// SPDX-License-Identifier: Apache-2.0
#include "load_options.hpp"

#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"

namespace tessera::train {
namespace {

constexpr const char* kOutput = "output.weight";

/// A tied checkpoint lacks the output layer alone, which would then keep its initial values without
/// a word.
void require_same_tying(const checkpoint::WeightSource& source, const model::ModelSpec& model) {
  const std::string group = "model/";
  if (source.find(group + model::kTokenEmbedding) == nullptr) return;
  const bool tied = source.find(group + kOutput) == nullptr;
  if (tied == model.dimensions.tied) return;
  const char* apart = "has weights of its own";
  const char* together = "is tied to the embedding";
  fail(ExitCode::usage,
       "the output layer in {} {}, and in {} it {}; use the configuration that it was written "
       "with, or {} by "
       "checkpoint.exclude_from_loading = [\"{}\"]",
       source.description(), tied ? together : apart, model.name, tied ? apart : together,
       tied ? "start with initial values of the output layer"
            : "skip the output layer of the checkpoint",
       kOutput);
}

checkpoint::Policy policy_of(plan::Mismatch mismatch) {
  using checkpoint::Policy;
  return mismatch == plan::Mismatch::strict ? Policy::strict
         : mismatch == plan::Mismatch::warn ? Policy::warn
                                            : Policy::ignore;
}

}  // namespace

checkpoint::LoadOptions load_options(const plan::LoadChoice& choice,
                                     const model::ModelSpec& model) {
  checkpoint::LoadOptions options;
  options.missing = options.extra = options.differing = policy_of(choice.mismatch);
  options.log = [](const std::string& line) { log::warning("{}", line); };
  options.leave_out = [choice](std::string_view name) { return choice.skips(name); };
  if (!choice.excludes(kOutput))
    options.accept = [&model](const checkpoint::WeightSource& source) {
      require_same_tying(source, model);
    };
  return options;
}

}  // namespace tessera::train
