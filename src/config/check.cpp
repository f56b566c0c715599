// SPDX-License-Identifier: Apache-2.0
// Values that do not have the form that their key asks for.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <set>

#include "draft.hpp"
#include "tessera/config/key_names.hpp"
#include "tessera/config/microbatch_steps.hpp"
#include "tessera/config/mixture.hpp"

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

/// Values whose form is more than a type and a range.
class ValueChecker {
 public:
  explicit ValueChecker(Draft& draft) : draft_(draft), job_(draft.job) {}

  void all() {
    microbatch_steps();
    reshard_rules();
    mixture();
    checkpoint();
    folders();
    recompute();
  }

 private:
  template <class... Args>
  void wrong(std::string_view key, fmt::format_string<Args...> format, Args&&... args) {
    draft_.complain_of({key}, fmt::format(format, std::forward<Args>(args)...));
  }

  void microbatch_steps() {
    std::int64_t last = 0;
    for (const std::string& entry : job_.parallelism.pipeline_parallel_microbatch_steps) {
      const auto from = microbatch_step(entry);
      if (!from || from->step <= last)
        return wrong(kMicroSteps,
                     "'{}' in pipeline_parallel_microbatch_steps is not a valid STEP:SIZE{}",
                     shown(entry),
                     from ? fmt::format(" after step {}; write the steps in ascending order", last)
                          : ", two whole numbers from 1");
      last = from->step;
    }
  }

  void reshard_rules() {
    const Option policies = *find_option("parallelism.fsdp_reshard_after_forward");
    JobConfig scratch;
    for (const Strings& rule : job_.parallelism.reshard_rules)
      if (rule.size() == 2)
        if (const auto problem = assign(policies, scratch, rule[1]))
          wrong("parallelism.reshard_rules", "the policy of reshard rule '{}' {}", shown(rule[0]),
                *problem);
  }

  void mixture() {
    std::set<std::string> names;
    for (const Strings& row : job_.training.mixture) {
      const auto entry = mixture_entry(row);
      if (!entry)
        wrong("training.mixture",
              "a source of training.mixture needs a path and a weight above 0, not '{}' and '{}'",
              shown(row.empty() ? "" : row[0]), shown(row.size() < 2 ? "" : row[1]));
      else if (!names.insert(entry->name).second)
        wrong("training.mixture",
              "two sources of training.mixture have the name '{}'; give each its own name",
              shown(entry->name));
    }
  }

  void checkpoint() {
    const Checkpoint& c = job_.checkpoint;
    if (c.keep_latest_k == 1)
      wrong("checkpoint.keep_latest_k",
            "keep_latest_k must be 0 (all) or at least 2: while one checkpoint is written, another "
            "must be complete");
    if (std::ranges::find(c.exclude_from_loading, "train_state") != c.exclude_from_loading.end())
      wrong("checkpoint.exclude_from_loading",
            "train_state cannot be excluded: the run would overwrite its own checkpoints; to start "
            "a new run from these weights, set checkpoint.initial_load_path and another "
            "job.dump_folder");
  }

  void folders() {
    if (job_.checkpoint.folder.empty())
      wrong("checkpoint.folder",
            "checkpoint.folder is empty; name a folder inside job.dump_folder");
    if (job_.comm.save_traces_folder.empty())
      wrong("comm.save_traces_folder",
            "comm.save_traces_folder is empty; name a folder inside job.dump_folder");
    if (job_.comm.save_traces_file_prefix.find('/') != std::string::npos)
      wrong("comm.save_traces_file_prefix",
            "comm.save_traces_file_prefix is the beginning of a file's name, without '/'; name a "
            "folder in comm.save_traces_folder");
    if (job_.debug.dump_gradients && job_.debug.dump_gradients->empty())
      wrong("debug.dump_gradients", "debug.dump_gradients is empty; name a folder");
    if (job_.job.dump_folder.empty())
      wrong("job.dump_folder", "job.dump_folder is empty; name the run's folder");
  }

  void recompute() {
    const std::string& option = job_.activation_checkpoint.selective_ac_option;
    const bool digits = !option.empty() && option.size() < 10 &&
                        std::ranges::all_of(option, [](char c) { return c >= '0' && c <= '9'; });
    if (option != "op" && (!digits || std::stoi(option) == 0))
      wrong("activation_checkpoint.selective_ac_option",
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

void check_values(Draft& draft) { ValueChecker(draft).all(); }

}  // namespace tessera::config
