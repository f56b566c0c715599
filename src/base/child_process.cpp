// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/child_process.hpp"

#include <time.h>

namespace tessera {

BlockedSignals::BlockedSignals(std::initializer_list<int> signals) {
  ::signal(SIGCHLD, SIG_DFL);
  sigemptyset(&handled_);
  for (const int signal : signals) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&handled_, signal);
  }
  sigprocmask(SIG_BLOCK, &handled_, &before_);
}

BlockedSignals::~BlockedSignals() {
  const timespec none{};
  while (sigtimedwait(&handled_, nullptr, &none) > 0) {
  }
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

std::vector<char*> words_for_exec(const std::vector<std::string>& command) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  return words;
}

}  // namespace tessera
