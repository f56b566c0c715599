// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/load_choice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"
#include "tessera/base/name_pattern.hpp"

namespace tessera::train {
namespace {

constexpr std::string_view kOptimizer = "optimizer/";
constexpr const char* kOutput = "output.weight";

/// "layers.0.wq" of "optimizer/exp_avg/layers.0.wq".
std::string_view fqn_of(std::string_view name) { return name.substr(name.rfind('/') + 1); }

std::vector<std::string> names_of(const model::ModelSpec& model) {
  std::vector<std::string> names;
  for (const model::ParamSpec& spec : model.params) names.push_back(spec.fqn);
  for (const model::BufferSpec& buffer : model.buffers) names.push_back(buffer.fqn);
  return names;
}

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

}  // namespace

LoadChoice LoadChoice::of(const config::Checkpoint& options, const model::ModelSpec& model) {
  LoadChoice choice;
  for (const std::string& entry : options.exclude_from_loading) {
    if (entry == "optimizer")
      choice.optimizer = false;
    else if (entry == "lr_scheduler")
      choice.schedule = false;
    else if (entry == "dataloader")
      choice.data = false;
    else
      choice.excluded.push_back(entry);
  }
  std::vector<std::string> names = names_of(model);
  names.push_back(kOutput);  // of a checkpoint whose output layer is not tied
  for (const std::string& pattern : choice.excluded)
    require_matches(pattern, names, "checkpoint.exclude_from_loading");
  if (options.load_mismatch == "warn") choice.mismatch = checkpoint::Policy::warn;
  if (options.load_mismatch == "ignore") choice.mismatch = checkpoint::Policy::ignore;
  return choice;
}

bool LoadChoice::excludes(std::string_view fqn) const {
  return std::ranges::any_of(excluded,
                             [&](const std::string& pattern) { return matches(pattern, fqn); });
}

LoadChoice LoadChoice::of_own(const config::Checkpoint& options, const model::ModelSpec& model) {
  // whose patterns must be right, whether they count or not
  LoadChoice choice = of(options, model);
  if (options.initial_load_path) {
    const bool data = choice.data;
    choice = {};
    choice.data = data;
  }
  choice.step = options.load_step;
  choice.saves = !options.load_only;
  return choice;
}

std::string LoadChoice::left_out() const {
  std::vector<std::string> names = excluded;
  if (!optimizer) names.push_back("optimizer");
  if (!schedule) names.push_back("lr_scheduler");
  if (!data) names.push_back("dataloader");
  return fmt::format("{}", fmt::join(names, ", "));
}

checkpoint::LoadOptions LoadChoice::options(const model::ModelSpec& model) const {
  checkpoint::LoadOptions options;
  options.missing = options.extra = options.differing = mismatch;
  options.log = [](const std::string& line) { log::warning("{}", line); };
  options.leave_out = [choice = *this](std::string_view name) {
    return (!choice.optimizer && name.starts_with(kOptimizer)) || choice.excludes(fqn_of(name));
  };
  if (!excludes(kOutput))
    options.accept = [&model](const checkpoint::WeightSource& source) {
      require_same_tying(source, model);
    };
  return options;
}

}  // namespace tessera::train
