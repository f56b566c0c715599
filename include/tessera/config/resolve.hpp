// From a command line to a checked job: file, flags, defaults, and where each value came from.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/config/job_config.hpp"

namespace tessera::config {

struct Resolved {
  JobConfig job;
  /// Of every key: "job.toml:12", "command line", "default", or the key that decided it.
  std::map<std::string, std::string> origins;
  /// For people, each printed once by rank 0. At most one of them is about keys that Tessera does not act on yet.
  std::vector<std::string> warnings;

  /// "job.toml:12" | "command line" | "default"; the key may be spelt in any way that a file may.
  const std::string& origin(std::string_view key) const;
  /// Every key, with its origin as a comment; reads back as the same job.
  std::string to_toml() const;
  /// The same job with the paths of its files absolute, as the current folder makes them: for a run's record, which is
  /// read from other folders.
  Resolved with_absolute_paths() const;
  /// JSON that deserialize() takes: what rank 0 broadcasts. All bits of every value are kept.
  std::string serialize() const;
  /// Throws Error(environment) when the text is not serialize()'s.
  static Resolved deserialize(std::string_view text);
};

/// Reads `[FILE] [--section.key value]...`; flags win over the file. No file = defaults.
/// Throws one Error(usage) whose message lists every problem of file and flags with its file:line:column or flag.
/// What depends on the number of ranks is not checked here: mesh::Layout::resolve.
Resolved resolve(const std::vector<std::string>& args);

/// Why a run of this job cannot start although the configuration is well-formed: settings that Tessera does not act on
/// yet and that would change what is computed. Empty when it can. One line each, with the key's origin.
std::vector<std::string> unsupported_for_run(const Resolved& resolved);

}  // namespace tessera::config
