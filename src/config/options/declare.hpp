// How a section declares its options: OPTION(training.steps, "help") binds the key and the member of that name.
#pragma once

#include "tessera/config/option_table.hpp"

namespace tessera::config {

/// A macro because the key's text and the member's name must be one thing.
#define OPTION(path, ...) \
  Option { #path, [](JobConfig& job) -> Member { return &job.path; }, __VA_ARGS__ }

using OptionList = std::vector<Option>;

OptionList job_options();          ///< job, model, optimizer, lr_scheduler
OptionList training_options();     ///< training, activation_checkpoint, compile, validation
OptionList parallelism_options();  ///< parallelism
OptionList checkpoint_options();   ///< checkpoint
OptionList quantize_options();     ///< quantize
OptionList system_options();       ///< comm, metrics, profiling, debug, and what waits for later

}  // namespace tessera::config
