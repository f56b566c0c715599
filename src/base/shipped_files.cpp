// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/shipped_files.hpp"

#include <cstdlib>

#include "tessera/base/error.hpp"

namespace tessera {

namespace fs = std::filesystem;

fs::path share_folder() {
  std::error_code problem;
  if (const char* named = std::getenv("TESSERA_SHARE"); named && *named != '\0') {
    require(fs::is_directory(named, problem), ExitCode::usage,
            "TESSERA_SHARE={}: there is no such folder", named);
    return fs::absolute(named, problem);
  }
  // The program is PREFIX/bin/tessera or PREFIX/libexec/tessera/tessera-tensors.
  const fs::path programs = fs::read_symlink("/proc/self/exe", problem).parent_path();
  for (const fs::path& prefix : {programs.parent_path(), programs.parent_path().parent_path()})
    if (fs::path folder = prefix / "share" / "tessera"; fs::is_directory(folder, problem))
      return folder;
  return {};
}

}  // namespace tessera
