// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/job_check.hpp"

#include <fmt/format.h>

#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "named_files.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/name_pattern.hpp"
#include "tessera/config/key_names.hpp"
#include "tessera/config/microbatch_steps.hpp"
#include "tessera/config/option_table.hpp"
#include "tessera/parallel/reshard_policy.hpp"
#include "tessera/train/injected_faults.hpp"
#include "tessera/train/load_choice.hpp"
#include "tessera/train/pipeline_plan.hpp"
#include "tessera/train/setup.hpp"
#include "tessera/train/stage_ranges.hpp"

namespace tessera::train {

using mesh::Axis;
using Keys = std::initializer_list<std::string_view>;

namespace {

using namespace config::key_names;

/// All that a model's shape depends on.
std::string shape_key(const config::JobConfig& job, std::int64_t vocab) {
  const config::Model& m = job.model;
  const auto number = [](const std::optional<double>& value) {
    return value ? fmt::format("{}", *value) : "none";
  };
  return fmt::format("{}\n{}\n{}\n{} {} {} {} {}", m.name, m.flavor, m.hf_config.value_or(""),
                     vocab, number(m.moe_load_balance_coeff), number(m.moe_aux_loss_coeff),
                     number(m.moe_z_loss_coeff), job.debug.moe_force_load_balance);
}

/// A length that every cut divides, in the place of one that is complained of.
std::int64_t divisible_length(const mesh::Layout& layout) {
  return std::int64_t{2} * layout.degree(Axis::tp) * layout.degree(Axis::cp);
}

}  // namespace

int fewest_ranks(const config::Parallelism& p) {
  const std::int64_t tp = std::max(1, p.tensor_parallel_degree),
                     cp = std::max(1, p.context_parallel_degree);
  const std::int64_t lent = cp * (p.expert_tensor_parallel_degree > 1 ? 1 : tp);
  const std::int64_t ep = p.expert_parallel_degree;
  const std::int64_t shard =
      p.data_parallel_shard_degree == -1 ? ep / std::gcd(ep, lent) : p.data_parallel_shard_degree;
  const std::int64_t ranks = std::max(1, p.pipeline_parallel_degree) *
                             std::max(1, p.data_parallel_replicate_degree) *
                             std::max<std::int64_t>(1, shard) * cp * tp;
  return static_cast<int>(std::min<std::int64_t>(ranks, std::numeric_limits<int>::max()));
}

struct JobCheck::Known {
  Files files;
  /// by all that makes their shape
  std::map<std::string, std::shared_ptr<const model::ModelSpec>> models;
  std::map<std::string, std::int64_t> vocabularies;  ///< by data and tokenizer
};

namespace {

/// The rules for one job.
template <class Known>
class JobRules {
 public:
  JobRules(Known& known, config::Reading& reading, int ranks)
      : known_(known),
        reading_(reading),
        job_(reading.resolved.job),
        ranks_(ranks > 0 ? ranks : fewest_ranks(job_.parallelism)) {}

  void all() {
    mesh();
    obey({"debug.inject_faults", kPp, kReplicate, kShard, kCp, kTp, kEp, kEtp},
         [&] { InjectedFaults(job_.debug.inject_faults, ranks_); });
    const bool look = known_.files == JobCheck::Files::looked_at;
    model(look ? check_named_files(reading_, known_.vocabularies) : 0);
    if (model_) names();
    if (layout_) batch();
    if (layout_) sharding();
    if (layout_ && model_) fits();
  }

 private:
  /// Complains of the keys if the rule throws Error; says nothing of values that were not meant.
  /// True if it holds.
  bool obey(Keys keys, const std::function<void()>& rule) {
    if (!reading_.understood(keys)) return false;
    try {
      rule();
      return true;
    } catch (const Error& error) {
      reading_.complain_of(keys, error.what(), error.code());
      return false;
    }
  }

  /// The innermost degree that was asked for is named first.
  void mesh() {
    const config::Parallelism& p = job_.parallelism;
    const auto resolve = [&] {
      try {
        layout_ = mesh::Layout::resolve(degrees_of(p), ranks_);
      } catch (const Error& error) {
        const int least = fewest_ranks(p);
        if (least <= ranks_) throw;
        fail(error.code(), "{}; or start {} ranks: `tessera launch -n {} -- ...`", error.what(),
             least, least);
      }
    };
    if (p.tensor_parallel_degree != 1) {
      obey({kTp, kCp, kShard, kReplicate, kPp, kEp, kEtp}, resolve);
    } else if (p.context_parallel_degree != 1) {
      obey({kCp, kShard, kReplicate, kPp, kTp, kEp, kEtp}, resolve);
    } else {
      obey({kShard, kReplicate, kPp, kEp, kEtp, kTp, kCp}, resolve);
    }
  }

  void model(std::int64_t vocab) {
    const bool file = job_.model.hf_config.has_value();
    if (!file && (reading_.blames("model.name") || reading_.blames("model.flavor"))) return;
    const auto make = [&] {
      auto& known = known_.models[shape_key(job_, vocab)];
      if (!known)
        known = std::make_shared<const model::ModelSpec>(spec_of(decoder_shape_of(job_, vocab)));
      model_ = known;
    };
    if (file)
      obey({"model.hf_config"}, make);
    else
      obey({"model.moe_load_balance_coeff", "model.moe_aux_loss_coeff", "model.moe_z_loss_coeff",
            "model.flavor", "model.name", "model.hf_config"},
           make);
    if (model_)
      obey({"training.dataset_path", "training.mixture", "model.hf_assets_path"},
           [&] { check_vocabulary(vocab, model_->name, model_->dimensions.vocab); });
  }

  /// Patterns match something of the model.
  void names() {
    std::vector<std::string> units, params;
    for (const model::UnitSpec& unit : model_->units) units.push_back(unit.name);
    for (const model::ParamSpec& param : model_->params) params.push_back(param.fqn);
    for (const config::Strings& rule : job_.parallelism.reshard_rules)
      obey({"parallelism.reshard_rules"},
           [&] { require_matches(rule[0], units, "parallelism.reshard_rules"); });
    for (const std::string& pattern : job_.training.freeze)
      obey({"training.freeze"}, [&] { require_matches(pattern, params, "training.freeze"); });
    obey({"checkpoint.exclude_from_loading"}, [&] { LoadChoice::of(job_.checkpoint, *model_); });
  }

  /// Batch, sequence and microbatches each against a batch of which the others are right.
  void batch() {
    config::JobConfig probe = job_;
    probe.training.global_batch_size = -1;
    probe.training.seq_len = divisible_length(*layout_);
    probe.parallelism.pipeline_parallel_microbatch_size = 1;
    const auto adopt = [&](Keys keys, auto section, auto member) {
      if (reading_.blames(*keys.begin())) return;
      config::JobConfig with = probe;
      with.*section.*member = job_.*section.*member;
      if (obey(keys, [&] { BatchPlan::make(with, *layout_); })) probe = with;
    };
    adopt({kBatch, kLocal}, &config::JobConfig::training, &config::Training::global_batch_size);
    adopt({kSeq, kCp, kBalancer}, &config::JobConfig::training, &config::Training::seq_len);
    adopt({kMicro, kLocal}, &config::JobConfig::parallelism,
          &config::Parallelism::pipeline_parallel_microbatch_size);
    obey({kLocal}, [&] { plan_ = BatchPlan::make(probe, *layout_); });
  }

  void sharding() {
    std::vector<parallel::UnitWeights> units;
    if (model_)
      for (const model::UnitSpec& unit : model_->units) units.push_back({unit.name, 0, false});
    else
      units.push_back({"layers.0", 0, false});
    const auto policy_of = [](const std::string& text) {
      return parallel::ReshardPolicy::parse(text).value();
    };
    const int ranks = layout_->degree(Axis::dp_shard) * layout_->degree(Axis::cp);
    const bool pipelined = layout_->degree(Axis::pp) > 1;
    obey({kPolicy, kShard}, [&] {
      resolve_reshard(policy_of(job_.parallelism.fsdp_reshard_after_forward), {}, units, pipelined,
                      ranks, 0);
    });
    if (reading_.blames("parallelism.reshard_rules")) return;
    std::vector<parallel::ReshardRule> rules;
    for (const config::Strings& rule : job_.parallelism.reshard_rules)
      rules.push_back({rule[0], policy_of(rule[1])});
    obey({"parallelism.reshard_rules", kShard},
         [&] { resolve_reshard(policy_of("default"), rules, units, pipelined, ranks, 0); });
  }

  void fits() {
    obey({kTp}, [&] { check_tensor_parallel_fits(*model_, layout_->degree(Axis::tp)); });
    obey({kEp, kEtp}, [&] { check_experts_fit(*model_, *layout_); });
    if (!plan_) return;
    const bool sequence_parallel = !job_.parallelism.disable_sequence_parallel;
    if (!reading_.blames(kSeq))
      obey({kSeq, kTp, kLocal, kMicro, kNoSequenceParallel},
           [&] { check_tokens_fit(*model_, *layout_, *plan_, sequence_parallel); });
    obey({kLocal, kMicro, kPp, kSchedule, kBatch, kCsv},
         [&] { check_microbatches(job_, *layout_, *plan_); });
    validation(sequence_parallel);
    pipeline(*plan_);
    microbatch_steps();
  }

  void validation(bool sequence_parallel) {
    if (!job_.validation.enable || reading_.blames(kSeq)) return;
    obey({"validation.local_batch_size", "validation.enable", kLocal, kMicro, kTp, kBalancer,
          kNoSequenceParallel},
         [&] {
           check_tokens_fit(*model_, *layout_, BatchPlan::of_validation(job_, *layout_),
                            sequence_parallel);
         });
  }

  void pipeline(const BatchPlan& plan) {
    const bool cuts_are_wrong = reading_.blames(kCuts) || reading_.blames(kParts);
    if (layout_->degree(Axis::pp) == 1 || cuts_are_wrong || !knows_pipeline()) return;
    const bool planned = obey({kSchedule, kLayers, kMap, kCsv, kCuts, kParts, kPp}, [&] {
      stages_ = pipeline_plan_of(job_, *model_, *layout_, plan).map.stages();
    });
    if (!planned) return;
    obey({kCuts, kParts, kLayers, kPp, kSchedule},
         [&] { planned_stage_ranges(job_, *model_, stages_); });
  }

  /// Were all keys understood that shape the pipeline? Most of them are not to blame where it does
  /// not fit.
  bool knows_pipeline() const {
    return reading_.understood({kLocal, kBatch, kMicro, kPp, kSchedule, kCsv, kMap, kCuts, kParts,
                                kLayers, "parallelism.pipeline_parallel_split",
                                "parallelism.pipeline_parallel_first_stage_less_layers",
                                "parallelism.pipeline_parallel_last_stage_less_layers"});
  }

  void microbatch_steps() {
    if (reading_.blames(kMicroSteps) || reading_.blames(kSeq) || reading_.blames(kBatch) ||
        !knows_pipeline())
      return;
    for (const std::string& entry : job_.parallelism.pipeline_parallel_microbatch_steps)
      obey({kMicroSteps, kBalancer, kNoSequenceParallel}, [&] {
        check_job_fits(job_, *model_, *layout_,
                       BatchPlan::make(job_, *layout_, config::microbatch_step(entry)->size));
      });
  }

  Known& known_;
  config::Reading& reading_;
  const config::JobConfig& job_;
  int ranks_;
  std::optional<mesh::Layout> layout_;
  std::shared_ptr<const model::ModelSpec> model_;
  std::optional<BatchPlan> plan_;
  int stages_ = 1;
};

}  // namespace

JobCheck::JobCheck(Files files) : known_(std::make_unique<Known>(Known{files, {}, {}})) {}
JobCheck::~JobCheck() = default;

void JobCheck::find_problems(config::Reading& job, int ranks) {
  if (!job.whole) return;
  config::find_unsupported(job);
  JobRules(*known_, job, ranks).all();
}

}  // namespace tessera::train
