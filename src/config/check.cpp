// SPDX-License-Identifier: Apache-2.0
// What one key implies for another, and values that contradict each other.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <initializer_list>
#include <map>

#include "draft.hpp"
#include "tessera/base/suggest.hpp"
#include "tessera/config/key_names.hpp"
#include "tessera/config/microbatch_steps.hpp"
#include "tessera/schedule/traits.hpp"

namespace tessera::config {

namespace {

using namespace key_names;

const std::vector<std::string_view>& schedules() { return find_option(kSchedule)->allowed; }

std::string lower_letters(std::string_view name) {
  std::string out;
  for (const unsigned char c : name)
    if (c != '-' && c != '_' && c != ' ') out += static_cast<char>(std::tolower(c));
  return out;
}

class Checker {
 public:
  explicit Checker(Draft& draft) : draft_(draft), job_(draft.job) {}

  void all() {
    flavor();
    degrees();
    batch();
    sequence();
    pipeline();
    model_parts();
    sharding();
    precision();
    schedule();
    checkpoint();
    recompute();
    profiling();
  }

 private:
  /// Of all keys that the rule compares; the first one is to blame.
  template <class... Args>
  void wrong(std::initializer_list<std::string_view> keys, fmt::format_string<Args...> format,
             Args&&... args) {
    draft_.complain_of(keys, fmt::format(format, std::forward<Args>(args)...));
  }

  std::string at(std::string_view key) const { return draft_.place_of(key).exact(); }

  /// TorchTitan's flavors; a config.json brings sizes of its own. The names with an attention's are
  /// the same models.
  void flavor() {
    static const std::map<std::string, Strings> kFlavors{
        {"llama3",
         {"debugmodel", "1B", "3B", "8B", "70B", "405B", "debugmodel_flex_attn",
          "debugmodel_varlen_attn", "8B_flex", "8B_varlen"}},
        {"qwen3",
         {"debugmodel", "0.6B", "1.7B", "4B", "8B", "14B", "32B", "debugmodel_moe", "30B-A3B",
          "235B-A22B"}},
        {"mixtral", {"debugmodel", "8x7B", "8x22B"}},
        {"deepseek_v3", {"debugmodel", "debugmodel_flex_attn", "16B", "236B", "671B"}},
        {"gpt_oss", {"debugmodel", "20b", "120b"}}};
    const Model& m = job_.model;
    const auto known = kFlavors.find(m.name);
    if (known == kFlavors.end() || m.hf_config ||
        std::ranges::find(known->second, m.flavor) != known->second.end())
      return;
    wrong({"model.flavor", "model.name", "model.hf_config"},
          "model.flavor '{}' is not one of {}'s: {}{}", shown(m.flavor), m.name,
          fmt::join(known->second, ", "), did_you_mean(m.flavor, known->second));
  }

  void degrees() {
    std::vector<std::string_view> open;
    for (const auto key : {kPp, kTp, kCp, kReplicate, kShard})
      if (get(*find_option(key), job_) == Value{std::int64_t{-1}}) open.push_back(key);
    if (open.size() > 1)
      wrong({open[0], open[1]},
            "{} and {} are both -1 ({}); only one degree can be -1 (the remaining ranks)", open[0],
            open[1], at(open[1]));
    const Parallelism& p = job_.parallelism;
    const int etp = p.expert_tensor_parallel_degree;
    if (etp != 1 && etp != p.tensor_parallel_degree)
      wrong({kEtp, kTp},
            "expert_tensor_parallel_degree {} must be 1 or tensor_parallel_degree ({})", etp,
            p.tensor_parallel_degree);
  }

  void batch() {
    const Training& t = job_.training;
    const Parallelism& p = job_.parallelism;
    if (t.global_batch_size == -1) return;
    const bool known = p.data_parallel_shard_degree != -1 && p.data_parallel_replicate_degree != -1;
    const std::int64_t ranks =
        known ? std::int64_t{p.data_parallel_shard_degree} * p.data_parallel_replicate_degree : 1;
    // A quotient, because the product of two large numbers may not fit.
    const bool divides =
        t.global_batch_size % ranks == 0 && t.global_batch_size / ranks % t.local_batch_size == 0;
    if (!divides)
      wrong({kBatch, kLocal, kShard, kReplicate},
            "global_batch_size {} is not a multiple of local_batch_size {} ({}){}",
            t.global_batch_size, t.local_batch_size, at(kLocal),
            known ? fmt::format(" x {} data-parallel ranks", ranks) : "");
  }

  void sequence() {
    const Parallelism& p = job_.parallelism;
    const std::int64_t tp = p.disable_sequence_parallel ? 1 : std::max(p.tensor_parallel_degree, 1),
                       cp = std::max(p.context_parallel_degree, 1);
    const int chunks = p.context_parallel_load_balancer ? 2 : 1;  // of each context-parallel rank
    const std::int64_t parts = tp * (cp > 1 ? chunks * cp : 1);
    if (job_.training.seq_len % parts != 0)
      wrong({kSeq, kTp, kCp, kBalancer, kNoSequenceParallel},
            "seq_len {} is not a multiple of {} (tensor_parallel_degree {}{}), the number of parts "
            "of each sequence",
            job_.training.seq_len, parts, tp,
            cp > 1 ? fmt::format(" x {}context_parallel_degree {}", chunks == 2 ? "2 x " : "", cp)
                   : "");
    if (p.enable_async_tensor_parallel && p.disable_sequence_parallel)
      wrong({"parallelism.enable_async_tensor_parallel", kNoSequenceParallel},
            "enable_async_tensor_parallel overlaps the transfers of sequence parallelism, which "
            "disable_sequence_parallel ({}) turns off; keep one of them",
            at(kNoSequenceParallel));
  }

  /// Null for a schedule from a file.
  const schedule::Traits* traits() const {
    return schedule::find_traits(job_.parallelism.pipeline_parallel_schedule);
  }

  void pipeline() {
    const Parallelism& p = job_.parallelism;
    if (p.pipeline_parallel_degree == 1) return;
    const std::int64_t local = job_.training.local_batch_size,
                       micro = p.pipeline_parallel_microbatch_size;
    if (micro == 0)
      tuned();
    else if (local % micro != 0)
      wrong({kMicro, kLocal, kPp},
            "local_batch_size {} ({}) is not a multiple of pipeline_parallel_microbatch_size {}",
            local, at(kLocal), micro);
    else if (p.pipeline_parallel_degree > 1)
      rounds(local / micro);
    microbatch_steps();
    schedule_file();
  }

  void tuned() {
    if (job_.debug.deterministic)
      wrong({kMicro, "debug.deterministic", kPp},
            "pipeline_parallel_microbatch_size = \"auto\" chooses by timing, and "
            "debug.deterministic needs the same "
            "choice in every run; set a number");
  }

  void microbatch_steps() {
    const Parallelism& p = job_.parallelism;
    const std::int64_t local = job_.training.local_batch_size;
    std::int64_t last = 0;
    for (const std::string& entry : p.pipeline_parallel_microbatch_steps) {
      const auto from = microbatch_step(entry);
      if (!from || from->step <= last)
        return wrong({kMicroSteps},
                     "'{}' in pipeline_parallel_microbatch_steps is not a valid STEP:SIZE{}",
                     shown(entry),
                     from ? fmt::format(" after step {}; write the steps in ascending order", last)
                          : ", two whole numbers from 1");
      last = from->step;
      if (local % from->size != 0)
        wrong(
            {kMicroSteps, kLocal, kPp},
            "local_batch_size {} ({}) is not a multiple of {}, the microbatch size from step {} on",
            local, at(kLocal), from->size, from->step);
    }
    if (last > 0 && p.pipeline_parallel_microbatch_size == 0)
      wrong({kMicroSteps, kMicro, kPp},
            "pipeline_parallel_microbatch_steps gives sizes, and pipeline_parallel_microbatch_size "
            "= \"auto\" ({}) "
            "chooses one; keep one of the two keys",
            at(kMicro));
  }

  void rounds(std::int64_t microbatches) {
    const Parallelism& p = job_.parallelism;
    if (traits() && !traits()->fills_rounds(microbatches, p.pipeline_parallel_degree))
      wrong({kSchedule, kLocal, kMicro, kPp},
            "{} needs a number of microbatches ({}) that fills equal rounds of at least "
            "pipeline_parallel_degree {}",
            p.pipeline_parallel_schedule, microbatches, p.pipeline_parallel_degree);
  }

  void schedule_file() {
    const Parallelism& p = job_.parallelism;
    const bool wants = p.pipeline_parallel_schedule.starts_with("PipelineSchedule");
    const bool has = !p.pipeline_parallel_schedule_csv.empty();
    if (wants && !has)
      wrong({kSchedule, kCsv, kPp}, "{} needs pipeline_parallel_schedule_csv",
            p.pipeline_parallel_schedule);
    if (has && !wants)
      wrong({kCsv, kSchedule, kPp},
            "pipeline_parallel_schedule_csv needs pipeline_parallel_schedule "
            "PipelineScheduleSingle or "
            "PipelineScheduleMulti, not {}",
            p.pipeline_parallel_schedule);
  }

  void model_parts() {
    const Parallelism& p = job_.parallelism;
    const auto cuts = static_cast<std::int64_t>(p.pipeline_parallel_split_points.size());
    if (p.module_fqns_per_model_part)
      fits_ranks(kParts, static_cast<std::int64_t>(p.module_fqns_per_model_part->size()), "parts");
    if (cuts > 0) fits_ranks(kCuts, cuts + 1, "stages");
    if (cuts > 0 && p.module_fqns_per_model_part)
      wrong({kCuts, kParts},
            "pipeline_parallel_split_points and module_fqns_per_model_part ({}) both set where "
            "stages begin; keep one",
            at(kParts));
  }

  void fits_ranks(std::string_view key, std::int64_t stages, const char* what) {
    const std::int64_t ranks = job_.parallelism.pipeline_parallel_degree;
    if (!job_.parallelism.pipeline_parallel_schedule_csv.empty())
      return;  // the file says how many there are
    using enum schedule::StagesPerRank;
    const schedule::StagesPerRank each = traits() ? traits()->stages : one;
    if (ranks > 1 && !schedule::fits(each, stages, ranks))
      wrong({key, kSchedule, kPp, kCsv}, "{} {} do not fit {} on pipeline_parallel_degree {} ({})",
            stages, what, job_.parallelism.pipeline_parallel_schedule, ranks,
            each == two       ? "two for each rank"
            : each == several ? "two or more for each rank"
                              : "one for each rank");
  }

  void sharding() {
    const Option policies = *find_option("parallelism.fsdp_reshard_after_forward");
    JobConfig scratch;
    for (const Strings& rule : job_.parallelism.reshard_rules)
      if (rule.size() == 2)
        if (const auto problem = assign(policies, scratch, rule[1]))
          wrong({"parallelism.reshard_rules"}, "the policy of reshard rule '{}' {}", shown(rule[0]),
                *problem);
    if (job_.parallelism.fsdp_gradient_accumulation == "sharded" && job_.debug.deterministic)
      wrong({"parallelism.fsdp_gradient_accumulation", "debug.deterministic"},
            "fsdp_gradient_accumulation = \"sharded\" sums over ranks before microbatches, and "
            "debug.deterministic "
            "needs the opposite order; use \"default\"");
  }

  void precision() {
    const Training& t = job_.training;
    for (const auto& [key, value] :
         {std::pair{"training.mixed_precision_param", t.mixed_precision_param},
          std::pair{"training.mixed_precision_reduce", t.mixed_precision_reduce}})
      if (value == "float64" && t.dtype != "float64")
        wrong({key, "training.dtype"}, "{} = \"float64\" needs training.dtype = \"float64\"", key);
  }

  void schedule() {
    const LrScheduler& s = job_.lr_scheduler;
    if (s.total_steps && *s.total_steps < job_.training.steps)
      draft_.warn_of(
          {"lr_scheduler.total_steps", "training.steps"},
          fmt::format("lr_scheduler.total_steps {} ({}) is less than training.steps {}: after it, "
                      "the learning rate "
                      "keeps its last value",
                      *s.total_steps, at("lr_scheduler.total_steps"), job_.training.steps));
  }

  void checkpoint() {
    const Checkpoint& c = job_.checkpoint;
    if (c.keep_latest_k == 1)
      wrong({"checkpoint.keep_latest_k"},
            "keep_latest_k must be 0 (all) or at least 2: while one checkpoint is written, another "
            "must be complete");
    if (c.initial_load_in_hf && !c.initial_load_model_only)
      wrong({"checkpoint.initial_load_model_only", "checkpoint.initial_load_in_hf"},
            "initial_load_model_only = false contradicts initial_load_in_hf ({}): Hugging "
            "Face files have only the model",
            at("checkpoint.initial_load_in_hf"));
    if (c.initial_load_in_hf_quantized && !c.initial_load_in_hf)
      wrong({"checkpoint.initial_load_in_hf_quantized", "checkpoint.initial_load_in_hf"},
            "initial_load_in_hf_quantized needs initial_load_in_hf");
    if (c.last_save_in_hf && !c.last_save_model_only &&
        draft_.written("checkpoint.last_save_model_only"))
      wrong({"checkpoint.last_save_model_only", "checkpoint.last_save_in_hf"},
            "last_save_model_only = false contradicts last_save_in_hf ({})",
            at("checkpoint.last_save_in_hf"));
    if (std::ranges::find(c.exclude_from_loading, "train_state") != c.exclude_from_loading.end())
      wrong({"checkpoint.exclude_from_loading"},
            "train_state cannot be excluded: the run would overwrite its own checkpoints; to start "
            "a new run from "
            "these weights, set checkpoint.initial_load_path and another job.dump_folder");
    if (c.create_seed_checkpoint && (!c.enable || c.load_only))
      wrong({"checkpoint.create_seed_checkpoint", "checkpoint.enable", "checkpoint.load_only"},
            "create_seed_checkpoint saves a checkpoint, and {} ({}) saves none",
            c.enable ? "checkpoint.load_only = true" : "checkpoint.enable = false",
            at(c.enable ? "checkpoint.load_only" : "checkpoint.enable"));
    folder(c.folder);
  }

  void folder(const std::string& name) {
    if (name.empty())
      wrong({"checkpoint.folder"},
            "checkpoint.folder is empty; name a folder inside job.dump_folder");
    if (job_.job.dump_folder.empty())
      wrong({"job.dump_folder"}, "job.dump_folder is empty; name the run's folder");
  }

  void profiling() {
    const Profiling& p = job_.profiling;
    if (p.enable_profiling && p.profiler_warmup + p.profiler_active > p.profile_freq)
      wrong({"profiling.profile_freq", "profiling.profiler_active", "profiling.profiler_warmup",
             "profiling.enable_profiling"},
            "profile_freq {} is less than profiler_warmup {} + profiler_active {}", p.profile_freq,
            p.profiler_warmup, p.profiler_active);
  }

  void recompute() {
    const std::string& option = job_.activation_checkpoint.selective_ac_option;
    const bool digits = !option.empty() && option.size() < 10 &&
                        std::ranges::all_of(option, [](char c) { return c >= '0' && c <= '9'; });
    if (option != "op" && (!digits || std::stoi(option) == 0))
      wrong({"activation_checkpoint.selective_ac_option"},
            "activation_checkpoint.selective_ac_option must be a positive number of blocks or "
            "\"op\", not \"{}\"",
            shown(option));
  }

  Draft& draft_;
  const JobConfig& job_;
};

}  // namespace

std::string canonical_schedule(std::string_view name) {
  std::string wanted = lower_letters(name);
  if (wanted.starts_with("schedule")) wanted.erase(0, 8);
  // Megatron's and the papers' words for PyTorch's names.
  if (wanted == "interleave1f1b") wanted = "interleaved1f1b";
  if (wanted == "zbv") wanted = "zbvzerobubble";
  if (wanted == "interleavezerobubble") wanted = "interleavedzerobubble";
  for (const std::string_view known : schedules())
    if (lower_letters(known) == wanted) return std::string(known);
  return {};
}

void check_combinations(Draft& draft) {
  Checker(draft).all();
  check_data(draft);
}

}  // namespace tessera::config
