// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/shipped_files.hpp"

#include <cstdlib>

namespace tessera {

namespace fs = std::filesystem;

fs::path share_folder() {
  std::error_code problem;
  if (const char* named = std::getenv("TESSERA_SHARE"); named && fs::is_directory(named, problem))
    return fs::absolute(named, problem);
  const fs::path program = fs::read_symlink("/proc/self/exe", problem);
  const fs::path folder = program.parent_path().parent_path() / "share" / "tessera";
  return fs::is_directory(folder, problem) ? folder : fs::path();
}

}  // namespace tessera
