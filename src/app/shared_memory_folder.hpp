// SPDX-License-Identifier: Apache-2.0
// The shared memory of a job that `tessera launch` starts.
#pragma once

#include <string>

namespace tessera::app {

/// A folder for the shared memory of the job's ranks, gone with this object: ranks that were killed
/// leave theirs behind. Its lock is mpirun's as well, and who is killed leaves it to the next
/// launcher.
class SharedMemoryFolder {
 public:
  SharedMemoryFolder();
  ~SharedMemoryFolder();
  SharedMemoryFolder(const SharedMemoryFolder&) = delete;
  /// Empty where there is no such memory.
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int lock_ = -1;
};

}  // namespace tessera::app
