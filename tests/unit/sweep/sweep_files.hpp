// SPDX-License-Identifier: Apache-2.0
// A sweep file in a folder of its own, as long as a test.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tessera/base/error.hpp"
#include "tessera/sweep/sweep.hpp"

namespace tessera::sweep::test {

class SweepFolder {
 public:
  SweepFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "tessera-sweep-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~SweepFolder() { std::filesystem::remove_all(path_); }
  SweepFolder(const SweepFolder&) = delete;
  SweepFolder& operator=(const SweepFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << text;
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

/// The sweep of a file whose first line, the job, is already there.
inline Sweep sweep_of(const std::string& text) {
  const SweepFolder folder;
  return read_sweep(folder.write("s.toml", "job = \"base.toml\"\n" + text));
}

/// The message of the Error(usage) for such a file, with "s.toml:" in place of the file's path.
inline std::string fault_of(const std::string& text) {
  const SweepFolder folder;
  try {
    read_sweep(folder.write("s.toml", text));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage) << error.what();
    std::string message = error.what();
    const std::string prefix = folder.path().string() + "/";
    for (std::size_t at; (at = message.find(prefix)) != message.npos;)
      message.erase(at, prefix.size());
    return message;
  }
  ADD_FAILURE() << "no error";
  return {};
}

}  // namespace tessera::sweep::test
