// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/signals.hpp"

#include "tessera/comm/rank_record.hpp"

#include <pthread.h>
#include <unistd.h>
#include <csignal>
#include <cstring>
#include <ctime>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <semaphore>
#include <thread>

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

sigset_t handled() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kSignals) sigaddset(&set, signal);
  return set;
}

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

/// The one thread that takes the signals. A handler writes its frame below the stack pointer, and
/// oneDNN's float32 products before 3.12 let that register point into the heap
/// (github.com/uxlfoundation/oneDNN/issues/4845). So the thread that makes this, and all threads
/// that it starts later, block the signals.
class SignalThread {
 public:
  SignalThread() {
    const sigset_t signals = handled();
    pthread_sigmask(SIG_BLOCK, &signals, &before_);
    thread_ = std::thread([this, signals] {
      pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
      end_.acquire();
    });
  }
  ~SignalThread() {
    end_.release();
    thread_.join();
  }
  SignalThread(const SignalThread&) = delete;
  SignalThread& operator=(const SignalThread&) = delete;

  /// The signals that were blocked before.
  const sigset_t& before() const { return before_; }

 private:
  sigset_t before_{};
  std::binary_semaphore end_{0};
  std::thread thread_;
};

std::optional<SignalThread> taker;

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
  taker.emplace();
}

SignalGuard::~SignalGuard() {
  if (--guards > 0) return;
  answer = nullptr;
  const sigset_t blocked = taker->before();
  taker.reset();
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &previous[i], nullptr);
  pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
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
