// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan/linear_precision.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sections.hpp"
#include "tessera/base/error.hpp"
#include "tessera/config/converters.hpp"

namespace tessera::plan {
namespace {

constexpr std::string_view kWeight = ".weight";

/// A linear layer's weight [out, in]?
bool is_matrix(const model::ParamSpec& param) {
  return param.global_shape.size() == 2 && param.fqn.ends_with(kWeight) &&
         !model::counts_experts(param.placement);
}

std::string module_of(const model::ParamSpec& weight) {
  return weight.fqn == model::kTokenEmbedding
             ? std::string(kOutputLayer)
             : weight.fqn.substr(0, weight.fqn.size() - kWeight.size());
}

/// torchao's limits (_auto_filter_for_recipe), from its measurements on an H100.
bool is_small(std::int64_t out, std::int64_t in, LinearRecipe recipe) {
  if (recipe == LinearRecipe::tensorwise) return out <= 4096 && in <= 1024;
  return in <= 2048 || out <= 1024 || (in <= 4096 && out <= 2048);
}

std::string_view name_of(LinearRecipe recipe) {
  switch (recipe) {
    case LinearRecipe::none:
      return "none";
    case LinearRecipe::tensorwise:
      return "tensorwise";
    case LinearRecipe::rowwise:
      return "rowwise";
    case LinearRecipe::rowwise_with_gw_hp:
      return "rowwise_with_gw_hp";
  }
  return {};
}

LinearRecipe recipe_named(std::string_view name) {
  using enum LinearRecipe;
  for (const LinearRecipe recipe : {tensorwise, rowwise, rowwise_with_gw_hp})
    if (name_of(recipe) == name) return recipe;
  contract_violated("name", __FILE__, __LINE__, std::string(name));
}

}  // namespace

bool LinearPrecision::rounds(const model::ParamSpec& weight) const {
  if (!rounds() || !is_matrix(weight)) return false;
  const std::int64_t out = weight.global_shape[0], in = weight.global_shape[1];
  return out % 16 == 0 && in % 16 == 0 && !(keeps_small && is_small(out, in, recipe)) &&
         rounds(std::string_view(module_of(weight)));
}

bool LinearPrecision::rounds(std::string_view module) const {
  return rounds() && std::ranges::none_of(kept, [&](const std::string& part) {
           return module.find(part) != module.npos;
         });
}

std::string LinearPrecision::summary(const model::ModelSpec& model) const {
  if (!rounds()) return {};
  int layers = 0, rounded = 0;
  for (const model::ParamSpec& param : model.params) {
    if (!is_matrix(param) || (param.fqn == model::kTokenEmbedding && !model.dimensions.tied))
      continue;
    ++layers;
    if (rounds(param)) ++rounded;
  }
  return fmt::format("float8 {}, emulated, in {} of {} linear layers", name_of(recipe), rounded,
                     layers);
}

LinearPrecision linear_precision(const config::JobConfig& job) {
  const config::Float8Linear& f = job.quantize.linear.float8;
  LinearPrecision plan;
  if (!config::wants(job, config::Converter::float8_linear)) return plan;
  plan.recipe = recipe_named(f.recipe_name.value_or("tensorwise"));
  plan.kept = f.filter_fqns;
  plan.keeps_small = std::erase(plan.kept, kSmallLayers) > 0;
  return plan;
}

}  // namespace tessera::plan
