// SPDX-License-Identifier: Apache-2.0
// Sweeps of files that live as long as a test.
#pragma once

#include <string>

#include "support/error_of.hpp"
#include "support/temporary_folder.hpp"
#include "tessera/sweep/sweep.hpp"

namespace tessera::sweep::test {

/// The sweep of a file whose first line, the job, is already there.
inline Sweep sweep_of(const std::string& text) {
  const tessera::test::TemporaryFolder folder;
  return read_sweep(folder.file("s.toml", "job = \"base.toml\"\n" + text));
}

/// The message of the Error(usage) for such a file, with "s.toml:" in place of the file's path.
inline std::string fault_of(const std::string& text) {
  const tessera::test::TemporaryFolder folder;
  std::string message =
      tessera::test::error_of(ExitCode::usage, [&] { read_sweep(folder.file("s.toml", text)); });
  const std::string prefix = folder.path().string() + "/";
  for (std::size_t at; (at = message.find(prefix)) != message.npos;)
    message.erase(at, prefix.size());
  return message;
}

}  // namespace tessera::sweep::test
