// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/signals.hpp"

#include "tessera/comm/rank_record.hpp"

#include <unistd.h>
#include <csignal>
#include <cstring>
#include <ctime>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>

namespace tessera::train {
namespace {

constexpr std::array kSignals{SIGUSR1, SIGUSR2, SIGTERM, SIGINT};
constexpr std::int64_t kSecond = 1'000'000'000;
constexpr int kUndecided = -1;

std::atomic<std::int64_t> first_ns{0};  ///< when the first one came
std::atomic<int> first_signal{0}, decided_code{kUndecided};
std::atomic<const char*> answer{nullptr};
bool launched = false;  ///< by `tessera launch`: SIGTERM then comes from mpirun, which ends the job
                        ///< and asks nothing
std::array<struct sigaction, kSignals.size()> previous;
int guards = 0;

extern "C" void on_signal(int signal) {
  if (signal == SIGTERM) comm::rank_record::note_asked_to_end();
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  const std::int64_t now = time.tv_sec * kSecond + time.tv_nsec;
  std::int64_t first = 0;
  if (first_ns.compare_exchange_strong(first, now)) {
    first_signal = signal;
    const char* text = signal == SIGTERM && launched ? nullptr : answer.load();
    if (text != nullptr) static_cast<void>(!write(STDERR_FILENO, text, strlen(text)));
    return;
  }
  if (now - first < kSecond) return;
  const int code = decided_code;
  _exit(code != kUndecided ? code : signal == SIGINT ? 130 : 143);
}

}  // namespace

SignalGuard::SignalGuard() {
  if (guards++ > 0) return;
  first_ns = 0;
  first_signal = 0;
  launched = std::getenv(comm::kRankRecordsVariable) != nullptr;
  decided_code = kUndecided;
  struct sigaction action {};
  action.sa_handler = &on_signal;
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &previous[i]);
}

SignalGuard::~SignalGuard() {
  if (--guards > 0) return;
  answer = nullptr;
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &previous[i], nullptr);
}

int SignalGuard::received() { return first_signal.load(); }

void SignalGuard::answer_with(const char* text) { answer = text; }

void SignalGuard::decide(int code) {
  decided_code = code;
  // for `tessera launch`, should this rank be killed before it ends
  comm::rank_record::note_code(code);
  answer = nullptr;
}

}  // namespace tessera::train
