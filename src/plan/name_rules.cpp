// SPDX-License-Identifier: Apache-2.0
#include "name_rules.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "rules.hpp"
#include "sections.hpp"
#include "tessera/base/name_pattern.hpp"
#include "tessera/plan/linear_precision.hpp"
#include "tessera/plan/model_fit.hpp"

namespace tessera::plan {
namespace {

class NameRules : Rules {
 public:
  NameRules(config::Reading& reading, const model::ModelSpec& model)
      : Rules(reading), model_(model) {}

  void all() {
    units();
    parameters();
    layers();
    remade_products();
    tokens();
  }

 private:
  void units() {
    std::vector<std::string> names;
    for (const model::UnitSpec& unit : model_.units) names.push_back(unit.name);
    for (const config::Strings& rule : job_.parallelism.reshard_rules)
      obey({"parallelism.reshard_rules"},
           [&] { require_matches(rule[0], names, "parallelism.reshard_rules"); });
  }

  void parameters() {
    bool right = true;
    for (const std::string& pattern : job_.training.freeze)
      right &= obey({"training.freeze"}, [&] { require_freezes(model_, pattern); });
    if (right) obey({"training.freeze"}, [&] { require_trains(model_, job_.training.freeze); });
    obey({"checkpoint.exclude_from_loading"}, [&] { LoadChoice::of(job_.checkpoint, model_); });
  }

  /// A warning: TorchTitan's files name layers of other models.
  void layers() {
    const LinearPrecision precision = linear_precision(job_);
    if (!precision.rounds()) return;
    const char* filter = precision.filter_key();
    if (!reading_.understood({filter, "model.converters"})) return;
    for (const std::string& part : precision.unknown_layers(model_))
      warn_of(filter,
              fmt::format(": no linear layer of {} has \"{}\" in its name", model_.name, part));
  }

  /// As above. The default is of mixtures.
  void remade_products() {
    const config::ActivationCheckpoint& a = job_.activation_checkpoint;
    const std::string_view key =
        "activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns";
    if (!reading_.understood({key})) return;
    const config::Strings own =
        config::ActivationCheckpoint().per_op_sac_force_recompute_mm_shapes_by_fqns;
    for (const std::string& part : a.per_op_sac_force_recompute_mm_shapes_by_fqns)
      if (std::ranges::find(own, part) == own.end() &&
          std::ranges::none_of(model_.params, [&](const model::ParamSpec& param) {
            return is_of_module(param.fqn, part);
          }))
        warn_of(key, fmt::format(": no weight of {} has \"{}\" in its name", model_.name, part));
  }

  void tokens() {
    const auto& end = job_.training.document_end_id;
    const std::int64_t vocabulary = model_.dimensions.vocab;
    if (end && *end >= vocabulary)
      wrong({"training.document_end_id"},
            "document_end_id {} is no token of {}, which has the ids 0 to {}", *end, model_.name,
            vocabulary - 1);
  }

  const model::ModelSpec& model_;
};

}  // namespace

void check_names(config::Reading& job, const model::ModelSpec& model) {
  NameRules(job, model).all();
}

}  // namespace tessera::plan
