// SPDX-License-Identifier: Apache-2.0
// tessera data inspect: what is in a token file, and in the samples of a job.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "command.hpp"
#include "command_line.hpp"

namespace tessera::app {

class DataInspect {
 public:
  explicit DataInspect(Flags& parent);
  bool asked() const { return app_.parsed(); }
  /// `job_flags`: words of the command line that are keys of a job.
  int run(const Args& job_flags) const;

 private:
  int inspect_file() const;
  int inspect_samples(const Args& job_flags) const;

  Flags app_;
  std::string file_, tokenizer_;
  std::vector<std::int64_t> samples_;
  std::int64_t tokens_ = 16;
  bool quick_ = false, json_ = false;
};

}  // namespace tessera::app
