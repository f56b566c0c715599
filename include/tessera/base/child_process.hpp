// SPDX-License-Identifier: Apache-2.0
// What a process does that starts others and waits for them.
#pragma once

#include <signal.h>

#include <initializer_list>
#include <string>
#include <vector>

namespace tessera {

/// Signals that this process takes one at a time instead of dying of them, for as long as this
/// lives: all of those named but the ones that it was told to ignore, as by nohup. SIGCHLD has its
/// usual meaning from then on: where it is ignored, a child's end cannot be waited for.
class BlockedSignals {
 public:
  BlockedSignals(std::initializer_list<int> signals);
  /// What has come and was not taken is dropped: it is not to end this process in place of its
  /// code.
  ~BlockedSignals();
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  const sigset_t& handled() const { return handled_; }
  /// The mask that was there before, for children.
  const sigset_t& before() const { return before_; }

 private:
  sigset_t handled_, before_;
};

/// The words of `command` for execvp(), valid as long as `command`. Made before fork(): a child may
/// not allocate, as another thread of its parent may have held the allocator's lock.
std::vector<char*> words_for_exec(const std::vector<std::string>& command);

}  // namespace tessera
