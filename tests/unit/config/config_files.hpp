// SPDX-License-Identifier: Apache-2.0
// Job files that live as long as a test.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/error_of.hpp"
#include "tessera/config/resolve.hpp"

namespace tessera::config::test {

class JobFile {
 public:
  explicit JobFile(const std::string& text) {
    static int count = 0;
    path_ =
        std::filesystem::temp_directory_path() /
        ("tessera-config-" + std::to_string(::getpid()) + "-" + std::to_string(count++) + ".toml");
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~JobFile() { std::filesystem::remove(path_); }
  JobFile(const JobFile&) = delete;
  JobFile& operator=(const JobFile&) = delete;
  std::string path() const { return path_.string(); }
  /// "FILE:line:" as errors have it.
  std::string at(int line) const { return path() + ":" + std::to_string(line) + ":"; }

 private:
  std::filesystem::path path_;
};

/// The message of the Error(usage) that resolving throws; fails the test when there is none, or of
/// another kind.
inline std::string mistake(const std::vector<std::string>& args) {
  return tessera::test::error_of(ExitCode::usage, [&] { resolve(args); });
}

/// What keeps a job that reads well from being run.
inline std::vector<Problem> unsupported(const std::vector<std::string>& args) {
  Reading job = read_job(args);
  EXPECT_TRUE(job.problems.empty());
  find_unsupported(job);
  return job.problems;
}

}  // namespace tessera::config::test
