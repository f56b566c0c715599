// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan/linear_precision.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sections.hpp"
#include "tessera/base/dtype.hpp"
#include "tessera/base/error.hpp"
#include "tessera/config/converters.hpp"
#include "tessera/plan/placement.hpp"

namespace tessera::plan {
namespace {

constexpr std::string_view kWeight = ".weight";
constexpr std::int64_t kFloat8Unit = 16;

/// A linear layer's weight [out, in]?
bool is_matrix(const model::ParamSpec& param) {
  return param.global_shape.size() == 2 && param.fqn.ends_with(kWeight) &&
         !model::counts_experts(param.placement);
}

/// Experts' weights [experts, out, in]?
bool is_expert_matrix(const model::ParamSpec& param) {
  return model::counts_experts(param.placement) && param.global_shape.size() == 3;
}

/// The module of a mixture's experts.
std::string_view experts_of(const model::ParamSpec& weight) {
  return std::string_view(weight.fqn).substr(0, weight.fqn.rfind('.'));
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
      return "float8 tensorwise";
    case LinearRecipe::rowwise:
      return "float8 rowwise";
    case LinearRecipe::rowwise_with_gw_hp:
      return "float8 rowwise_with_gw_hp";
    case LinearRecipe::blockwise:
      return "float8 blockwise";
    case LinearRecipe::mxfp8_floor:
      return "mxfp8 floor";
    case LinearRecipe::mxfp8_rceil:
      return "mxfp8 rceil";
  }
  return {};
}

/// None of what is refused.
LinearRecipe recipe_named(std::string_view name) {
  using enum LinearRecipe;
  for (const auto& [known, recipe] : {std::pair{"tensorwise", tensorwise},
                                      {"rowwise", rowwise},
                                      {"rowwise_with_gw_hp", rowwise_with_gw_hp},
                                      {"blockwise", blockwise},
                                      {"mxfp8_emulated", mxfp8_floor},
                                      {"mxfp8_cublas", mxfp8_floor},
                                      {"mxfp8_cublas_rceil", mxfp8_rceil}})
    if (known == name) return recipe;
  return none;
}

/// Elements that share a scale, and whether no block is short.
struct Blocks {
  std::int64_t size;
  bool whole;
  const char *recipe, *filter;
};

std::optional<Blocks> blocks_of(const LinearPrecision& precision) {
  if (precision.is_mx()) return Blocks{mx_block, true, "MXFP8", precision.filter_key()};
  if (precision.recipe == LinearRecipe::blockwise)
    return Blocks{float8_block, false, "blockwise", precision.filter_key()};
  return std::nullopt;
}

void require_blocks(const Blocks& blocks, const model::ParamSpec& weight, std::int64_t size,
                    const char* what, int ranks) {
  require(size % blocks.size == 0, ExitCode::usage,
          "{} rounds in blocks of {}, and {} has {} {}{}; add \"{}\" to {}", blocks.recipe,
          blocks.size, weight.fqn, size, what,
          ranks > 1 ? fmt::format(" on each of {} tensor-parallel ranks", ranks) : "",
          module_of(weight), blocks.filter);
}

}  // namespace

bool ExpertPrecision::rounds(const model::ParamSpec& weight) const {
  if (!rounds() || !is_expert_matrix(weight)) return false;
  const std::string_view module = experts_of(weight);
  return std::ranges::any_of(
      modules, [&](const std::string& part) { return module.find(part) != module.npos; });
}

std::string ExpertPrecision::summary(const model::ModelSpec& model) const {
  if (!rounds()) return {};
  std::set<std::string> mixtures, rounded;
  for (const model::ParamSpec& param : model.params) {
    if (!is_expert_matrix(param)) continue;
    mixtures.emplace(experts_of(param));
    if (rounds(param)) rounded.emplace(experts_of(param));
  }
  return fmt::format("experts in {}, emulated, in {} of {} mixtures", name_of(recipe),
                     rounded.size(), mixtures.size());
}

bool LinearPrecision::rounds(const model::ParamSpec& weight) const {
  if (!rounds() || !is_matrix(weight)) return false;
  const std::int64_t out = weight.global_shape[0], in = weight.global_shape[1];
  return out % 16 == 0 && in % 16 == 0 && !(keeps_small && is_small(out, in, recipe)) &&
         rounds(std::string_view(module_of(weight)));
}

bool LinearPrecision::gathers_bytes_of(const model::ParamSpec& weight) const {
  return gathers_bytes && weight.fqn != model::kTokenEmbedding && rounds(weight);
}

bool LinearPrecision::rounds(std::string_view module) const {
  return rounds() && std::ranges::none_of(kept, [&](const std::string& part) {
           return module.find(part) != module.npos;
         });
}

std::vector<std::string> LinearPrecision::unknown_layers(const model::ModelSpec& model) const {
  std::vector<std::string> unknown;
  for (const std::string& part : kept)
    if (std::ranges::none_of(model.params, [&](const model::ParamSpec& param) {
          return is_matrix(param) && module_of(param).find(part) != std::string::npos;
        }))
      unknown.push_back(part);
  return unknown;
}

bool LinearPrecision::wants_8bit_products(DType type) const {
  return !emulated && has_8bit_products(recipe, type);
}

std::vector<std::string> LinearPrecision::emulated_products(DType type) const {
  std::vector<std::string> names;
  if (rounds() && !wants_8bit_products(type)) names.emplace_back(name_of(recipe));
  if (experts.rounds()) names.push_back(fmt::format("experts in {}", name_of(experts.recipe)));
  return names;
}

std::string LinearPrecision::summary(const model::ModelSpec& model, bool by_device) const {
  if (!rounds()) return {};
  int layers = 0, rounded = 0;
  for (const model::ParamSpec& param : model.params) {
    if (!is_matrix(param) || (param.fqn == model::kTokenEmbedding && !model.dimensions.tied))
      continue;
    ++layers;
    if (rounds(param)) ++rounded;
  }
  return fmt::format("{}{} in {} of {} linear layers", name_of(recipe),
                     by_device ? "" : ", emulated,", rounded, layers);
}

bool has_8bit_products(LinearRecipe recipe, DType type) {
  using enum LinearRecipe;
  const bool float8 = recipe == tensorwise || recipe == rowwise || recipe == rowwise_with_gw_hp;
  return float8 && type == DType::bf16;
}

LinearPrecision linear_precision(const config::JobConfig& job) {
  const config::QuantizedLinear& q = job.quantize.linear;
  LinearPrecision plan;
  if (config::wants(job, config::Converter::mx_linear)) {
    plan.recipe = recipe_named(q.mx.recipe_name);
    plan.kept = q.mx.filter_fqns;
  }
  if (config::wants(job, config::Converter::float8_linear)) {
    plan.recipe = recipe_named(q.float8.recipe_name.value_or("tensorwise"));
    plan.kept = q.float8.filter_fqns;
    plan.keeps_small = std::erase(plan.kept, kSmallLayers) > 0;
    plan.emulated = q.float8.emulate;
    plan.gathers_bytes = q.float8.enable_fsdp_float8_all_gather;
  }
  if (config::wants(job, config::Converter::float8_experts))
    plan.experts = {LinearRecipe::rowwise, job.quantize.grouped_mm.float8.fqns};
  if (config::wants(job, config::Converter::mx_experts))
    plan.experts = {LinearRecipe::mxfp8_rceil, job.quantize.grouped_mm.mx.fqns};
  return plan;
}

void check_rounded_experts(const model::ModelSpec& model, const mesh::Layout& layout,
                           const ExpertPrecision& precision) {
  if (!precision.rounds()) return;
  const bool mx = precision.recipe == LinearRecipe::mxfp8_rceil;
  const std::int64_t unit = mx ? mx_block : kFloat8Unit;
  bool any = false;
  for (const model::ParamSpec& param : model.params) {
    if (!precision.rounds(param)) continue;
    any = true;
    const Shape shape = place(param, layout, mesh::Rank(0)).local_shape;
    for (const std::size_t dim : {1U, 2U})
      require(shape[dim] % unit == 0, ExitCode::usage,
              "{} multiplies sizes that are multiples of {}, and {} has {} on each rank; leave "
              "quantize.grouped_mm out of model.converters",
              mx ? "MXFP8" : "float8", unit, param.fqn, shape[dim]);
  }
  require(any, ExitCode::usage,
          "quantize.grouped_mm.{}.fqns names no experts of {}; name \"experts\", or leave "
          "quantize.grouped_mm out of model.converters",
          mx ? "mx" : "float8", model.name);
}

void check_blocks_fit(const model::ModelSpec& model, const mesh::Layout& layout,
                      const LinearPrecision& precision) {
  const auto blocks = blocks_of(precision);
  if (!blocks) return;
  for (const model::ParamSpec& param : model.params) {
    if (!precision.rounds(param)) continue;
    const Placement placed = place(param, layout, mesh::Rank(0));
    const int cut = tp_dimension(param.placement);
    for (const int dimension : {0, 1}) {
      const int ranks = dimension == cut ? layout.degree(mesh::Axis::tp) : 1;
      if (blocks->whole || ranks > 1)
        require_blocks(*blocks, param, placed.local_shape[static_cast<std::size_t>(dimension)],
                       dimension == 0 ? "outputs" : "inputs", ranks);
    }
  }
}

void check_block_tokens(const model::ModelSpec& model, const mesh::Layout& layout,
                        const LinearPrecision& precision, const BatchPlan& batch,
                        bool sequence_parallel) {
  const auto blocks = blocks_of(precision);
  if (!blocks) return;
  const int tp = layout.degree(mesh::Axis::tp);
  const std::int64_t tokens = batch.microbatch_rows * batch.cut.positions();
  for (const model::ParamSpec& param : model.params) {
    if (!precision.rounds(param)) continue;
    const bool routes = param.placement == model::Placement::shared && !layout.experts_cut_by_tp();
    const bool part = tp_dimension(param.placement) < 0 && (sequence_parallel || routes);
    const std::int64_t own = part ? tokens / tp : tokens;
    if (!blocks->whole && !(part && tp > 1)) continue;
    require(own % blocks->size == 0, ExitCode::usage,
            "{} rounds in blocks of {}, and gradients of {} are sums over the {} tokens of a "
            "microbatch that a rank has; choose a multiple of {}",
            blocks->recipe, blocks->size, param.fqn, own, blocks->size);
  }
}

}  // namespace tessera::plan
