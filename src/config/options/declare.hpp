// SPDX-License-Identifier: Apache-2.0
// How a section declares its options: OPTION(training.steps, "help").at_least(1) binds the key and
// the member of that name.
#pragma once

#include <utility>

#include "tessera/config/option_table.hpp"

namespace tessera::config {

/// An option under construction; its methods read as sentences about the key.
class Declaration {
 public:
  using Words = std::vector<std::string_view>;
  using Condition = bool (*)(const JobConfig&);

  Declaration(std::string_view key, Member (*member)(JobConfig&), std::string_view help)
      : option_{key, member, help} {}
  operator Option() const { return option_; }

  Declaration& at_least(double v) { return option_.minimum = v, *this; }
  Declaration& above(double v) { return option_.minimum = v, option_.above_minimum = true, *this; }
  Declaration& at_most(double v) { return option_.maximum = v, *this; }
  Declaration& below(double v) { return option_.maximum = v, option_.below_maximum = true, *this; }
  Declaration& or_minus_one() { return option_.minus_one = true, *this; }
  Declaration& short_flag(std::string_view flag) { return option_.short_flag = flag, *this; }
  Declaration& looked_up() { return option_.looked_up = true, *this; }
  /// "auto" is this number; kAutomatic leaves a value to the planner, that of a string, too.
  Declaration& or_auto(int meaning) { return option_.automatic = meaning, *this; }
  Declaration& or_list() { return option_.list_too = true, *this; }
  Declaration& or_count() { return option_.count_too = true, *this; }
  /// Tables with these columns; `spare` of the last ones may be missing.
  Declaration& rows_of(Words v, std::size_t spare = 0) {
    return option_.columns = std::move(v), option_.spare_columns = spare, *this;
  }
  Declaration& one_of(Words v) { return option_.allowed = std::move(v), *this; }

  Declaration& is_ours() { return option_.ours = true, *this; }
  Declaration& also_spelt(Words others) { return option_.aliases = std::move(others), *this; }
  Declaration& or_boolean(std::string_view true_word, std::string_view false_word) {
    return option_.true_word = true_word, option_.false_word = false_word, *this;
  }

  /// Other values than the default do not start: the reason; what works instead.
  Declaration& refused(std::string_view why) {
    return option_.support = Support::refused, option_.why = why, *this;
  }
  /// Other values than these do not start.
  Declaration& works_with(Words v, std::string_view why) {
    return option_.working = std::move(v), refused(why);
  }
  /// Part of a feature that is refused.
  Declaration& refused_with(std::string_view feature) {
    return option_.under = feature, refused({});
  }
  Declaration& harmless(std::string_view why) {
    return option_.support = Support::harmless, option_.why = why, *this;
  }
  Declaration& only_if(Condition c) { return option_.relevant = c, *this; }
  Declaration& with(std::string_view other) { return option_.under = other, *this; }

 private:
  Option option_;
};

/// A macro because the key's text and the member's name must be one thing.
#define OPTION(path, help) \
  Declaration(             \
      #path, [](JobConfig& job) -> Member { return &job.path; }, help)

using OptionList = std::vector<Option>;

OptionList job_options();          ///< job, model, optimizer, lr_scheduler
OptionList training_options();     ///< training, activation_checkpoint, compile, validation
OptionList parallelism_options();  ///< parallelism
OptionList checkpoint_options();   ///< checkpoint
OptionList quantize_options();     ///< quantize
OptionList
system_options();  ///< comm, kernels, metrics, profiling, debug, and what waits for later

}  // namespace tessera::config
