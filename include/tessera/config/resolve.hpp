// SPDX-License-Identifier: Apache-2.0
// From a command line to a checked job: file, flags, defaults, and where each value came from.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/config/job_config.hpp"
#include "tessera/config/problem.hpp"

namespace tessera::config {

struct Resolved {
  JobConfig job;
  /// Of every key: "job.toml:12", "command line", "default", or the key that decided it.
  std::map<std::string, std::string> origins;
  /// For people, each printed once by rank 0. At most one of them is about keys that Tessera does
  /// not act on yet.
  std::vector<std::string> warnings;
  /// For people: what the planner chose, and why. Not part of serialize().
  std::vector<std::string> choices;

  /// "job.toml:12" | "command line" | "default"; the key may be spelt in any way that a file may.
  const std::string& origin(std::string_view key) const;
  /// Every key, with its origin as a comment; reads back as the same job.
  std::string to_toml() const;
  /// The same job with the paths of its files absolute, as the current folder makes them: for a
  /// run's record, which is read from other folders.
  Resolved with_absolute_paths() const;
  /// JSON that deserialize() takes: what rank 0 broadcasts. All bits of every value are kept.
  std::string serialize() const;
  /// Throws Error(environment) when the text is not serialize()'s.
  static Resolved deserialize(std::string_view text);
};

/// What a job is read for.
enum class JobUse : std::uint8_t {
  training,
  inference,  ///< of a model that is there; evaluation too
};

/// A job as it was read, right or wrong: a key with a wrong value keeps its default, and is
/// complained of.
struct Reading : Findings {
  Resolved resolved;
  JobUse use = JobUse::training;
  bool files_elsewhere = false;  ///< on another machine, where the job will run

  /// False for an evaluation on data of their own.
  bool reads_training_data() const;
};

/// Reads `[FILE] [--section.key value]...`; flags win over the file. No file = defaults. Finds
/// every problem of a single key in file and flags. What keys say together, and what depends on
/// ranks and model, is component plan's.
Reading read_job(const std::vector<std::string>& args);

/// The same for who needs a good job only: throws one Error(usage) that lists every problem with
/// its file:line:column or flag.
Resolved resolve(const std::vector<std::string>& args);

/// Complains of settings that Tessera does not act on and that would change what is computed.
void find_unsupported(Reading& job);

}  // namespace tessera::config
