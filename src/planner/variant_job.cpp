// SPDX-License-Identifier: Apache-2.0
// A variant as a job: which keys say it, and what its values are called.
#include <fmt/format.h>

#include "tessera/planner/variant_space.hpp"

#include <algorithm>

namespace tessera::planner {
namespace {

/// Sets keys of a job, and notes those that become different.
class Changes {
 public:
  explicit Changes(ChangedJob& out) : out_(out) {}

  template <typename Value>
  void set(const char* key, Value& at, const Value& value) {
    if (at == value) return;
    at = value;
    if constexpr (std::is_same_v<Value, std::string>)
      note(key, fmt::format("\"{}\"", value));
    else if constexpr (std::is_same_v<Value, std::optional<std::int64_t>>)
      note(key, value ? std::to_string(*value) : "none");
    else
      note(key, fmt::format("{}", value));
  }

 private:
  void note(const char* key, const std::string& value) {
    out_.changes.push_back(fmt::format("{} = {}", key, value));
    out_.job.origins[key] = "tessera plan";
  }

  ChangedJob& out_;
};

void set_degrees(const Variant& v, const Variant& own, config::Parallelism& mesh,
                 Changes& changes) {
  const auto sharers = [](const Variant& mesh_of) {
    return mesh_of[Knob::tp] * mesh_of[Knob::cp] * mesh_of[Knob::pp] * mesh_of[Knob::replicate];
  };
  const bool moved = sharers(v) != sharers(own);
  if (moved)
    changes.set("parallelism.data_parallel_shard_degree", mesh.data_parallel_shard_degree, -1);
  // One degree alone may be open.
  const auto set = [&](const char* key, int& at, Knob knob) {
    if (v[knob] != own[knob] || (moved && at == -1)) changes.set(key, at, v[knob]);
  };
  set("parallelism.data_parallel_replicate_degree", mesh.data_parallel_replicate_degree,
      Knob::replicate);
  set("parallelism.tensor_parallel_degree", mesh.tensor_parallel_degree, Knob::tp);
  set("parallelism.pipeline_parallel_degree", mesh.pipeline_parallel_degree, Knob::pp);
  set("parallelism.context_parallel_degree", mesh.context_parallel_degree, Knob::cp);
  changes.set("parallelism.expert_parallel_degree", mesh.expert_parallel_degree, v[Knob::ep]);
  changes.set("parallelism.expert_tensor_parallel_degree", mesh.expert_tensor_parallel_degree,
              v[Knob::etp] == 1 ? v[Knob::tp] : 1);
  changes.set("parallelism.enable_async_tensor_parallel", mesh.enable_async_tensor_parallel,
              v[Knob::async_tp] == 1);
  changes.set("parallelism.expert_parallel_comm_backend", mesh.expert_parallel_comm_backend,
              std::string(v[Knob::once] == 1 ? "deepep" : "standard"));
}

void set_policies(const Variant& v, config::JobConfig& to, Changes& changes) {
  if (v[Knob::reshard] != 0)
    changes.set("parallelism.fsdp_reshard_after_forward", to.parallelism.fsdp_reshard_after_forward,
                std::string(v[Knob::reshard] == 1 ? "always" : "never"));
  if (v[Knob::accumulate] != 0)
    changes.set("parallelism.fsdp_gradient_accumulation", to.parallelism.fsdp_gradient_accumulation,
                std::string(v[Knob::accumulate] == 1 ? "sharded" : "unsharded"));
  std::string& compute = to.training.mixed_precision_param;
  if (v[Knob::precision] == 1)
    changes.set("training.mixed_precision_param", compute,
                std::string(compute == "float32" ? "bfloat16" : "float32"));
}

const char* text_of(Precision precision) {
  if (precision == Precision::f32) return "float32";
  return precision == Precision::bf16 ? "bfloat16" : "float8";
}

}  // namespace

void VariantSpace::set_batch(const Variant& v, config::JobConfig& to, ChangedJob& out) const {
  Changes changes(out);
  config::Parallelism& keys = to.parallelism;
  const int pp = v[Knob::pp];
  const std::int64_t rows = v[Knob::microbatch];
  const std::int64_t data = work_.gpus / (std::int64_t{v[Knob::tp]} * v[Knob::cp] * pp);
  std::int64_t local = rows;
  if (pp > 1) {
    const config::Parallelism wanted = pipeline_keys(v);
    changes.set("parallelism.pipeline_parallel_schedule", keys.pipeline_parallel_schedule,
                wanted.pipeline_parallel_schedule);
    changes.set("parallelism.pipeline_parallel_schedule_csv", keys.pipeline_parallel_schedule_csv,
                wanted.pipeline_parallel_schedule_csv);
    changes.set("parallelism.pipeline_parallel_layers_per_stage",
                keys.pipeline_parallel_layers_per_stage, wanted.pipeline_parallel_layers_per_stage);
    changes.set("parallelism.pipeline_parallel_split", keys.pipeline_parallel_split,
                wanted.pipeline_parallel_split);
    changes.set("parallelism.pipeline_parallel_microbatch_size",
                keys.pipeline_parallel_microbatch_size, rows);
    // Rounds are of one local batch only where a schedule keeps all of it.
    const std::int64_t all = sequences_ / data, now = to.training.local_batch_size;
    const schedule::Traits* traits = cuts_[static_cast<std::size_t>(v[Knob::schedule])].schedule;
    const bool stays = traits && !traits->keeps_all && all % now == 0 && now % rows == 0;
    local = stays ? now : all;
  }
  changes.set("training.local_batch_size", to.training.local_batch_size, local);
  if (to.training.global_batch_size != -1 || local * data != sequences_)
    changes.set("training.global_batch_size", to.training.global_batch_size, sequences_);
}

std::optional<ChangedJob> VariantSpace::job(const Variant& v) const {
  ChangedJob out{{}, job_};
  if (v == own_) return out;
  Changes changes(out);
  config::JobConfig& to = out.job.job;
  set_degrees(v, own_, to.parallelism, changes);
  const Recomputation& again = recomputations_[static_cast<std::size_t>(v[Knob::recompute])];
  changes.set("activation_checkpoint.mode", to.activation_checkpoint.mode, again.mode);
  if (!again.option.empty())
    changes.set("activation_checkpoint.selective_ac_option",
                to.activation_checkpoint.selective_ac_option, again.option);
  set_policies(v, to, changes);
  if (!keeps_batch(v)) set_batch(v, to, out);
  if (changeable_)
    for (const std::string& change : out.changes)
      if (!changeable_->contains(change.substr(0, change.find(' ')))) return std::nullopt;
  config::Reading reading;
  reading.resolved = out.job;
  if (!planner_->plan(reading, work_.gpus, 0)) return std::nullopt;
  return out;
}

int VariantSpace::most_recomputed() const {
  const auto whole = std::ranges::find_if(recomputations_, [](const Recomputation& one) {
    return one.kind == Recompute::full && one.blocks == 1;
  });
  return static_cast<int>(whole - recomputations_.begin());
}

int VariantSpace::turned(const Variant& v) const {
  int count = 0;
  for (const Knob knob : kEachKnob) count += v[knob] != own_[knob] ? 1 : 0;
  return count;
}

const char* VariantSpace::name_of(Knob knob) {
  constexpr std::array<const char*, kKnobs> kNames{
      "tp",        "cp",       "ep",          "experts over tp", "microbatch",
      "recompute", "async tp", "tokens once", "precision",       "pp",
      "replicas",  "weights",  "gradients",   "schedule",        "split"};
  return kNames[static_cast<std::size_t>(knob)];
}

std::string VariantSpace::text_of(Knob knob, const Variant& v) const {
  const auto number = static_cast<std::size_t>(v[knob]);
  if (knob == Knob::recompute) {
    const Recomputation& again = recomputations_[number];
    return again.mode == "selective" ? "selective " + again.option : again.mode;
  }
  if (knob == Knob::reshard) return frees_weights(v) ? "freed" : "kept";
  if (knob == Knob::accumulate) return adds_whole_gradients(v) ? "whole" : "sharded";
  if (knob == Knob::precision) return planner::text_of(without_lists(v).precision);
  if (knob == Knob::async_tp || knob == Knob::etp || knob == Knob::once)
    return number == 1 ? "on" : "off";
  if (knob == Knob::schedule) {
    if (v[Knob::pp] == 1) return "none";
    const Pipeline* pipeline = pipeline_of(v);
    const schedule::Traits* traits = cuts_[number].schedule;
    const std::string name = traits ? std::string(traits->name) : "of the job's file";
    return pipeline && pipeline->chunks() > 1 ? fmt::format("{} x {}", name, pipeline->chunks())
                                              : name;
  }
  if (knob == Knob::split) return v[Knob::pp] == 1 ? "none" : splits_[number];
  return std::to_string(number);
}

}  // namespace tessera::planner
