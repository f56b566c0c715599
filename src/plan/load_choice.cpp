// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan/checkpoint_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tessera/base/name_pattern.hpp"

namespace tessera::plan {
namespace {

constexpr const char* kOutput = "output.weight";

std::vector<std::string> names_of(const model::ModelSpec& model) {
  std::vector<std::string> names;
  for (const model::ParamSpec& spec : model.params) names.push_back(spec.fqn);
  for (const model::BufferSpec& buffer : model.buffers) names.push_back(buffer.fqn);
  return names;
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
  if (options.load_mismatch == "warn") choice.mismatch = Mismatch::warn;
  if (options.load_mismatch == "ignore") choice.mismatch = Mismatch::ignore;
  return choice;
}

bool LoadChoice::excludes(std::string_view fqn) const {
  return std::ranges::any_of(excluded,
                             [&](const std::string& pattern) { return matches(pattern, fqn); });
}

bool LoadChoice::skips(std::string_view name) const {
  return (!optimizer && name.starts_with("optimizer/")) ||
         excludes(name.substr(name.rfind('/') + 1));
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

}  // namespace tessera::plan
