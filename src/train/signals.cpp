#include "tessera/train/signals.hpp"

#include <csignal>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>

namespace tessera::train {
namespace {

constexpr std::array kSignals{SIGUSR1, SIGUSR2, SIGTERM, SIGINT};
std::atomic<int> first_signal{0};
std::array<struct sigaction, kSignals.size()> previous;

extern "C" void on_signal(int signal) {
  int none = 0;
  if (!first_signal.compare_exchange_strong(none, signal)) _exit(signal == SIGINT ? 130 : 143);
}

}  // namespace

SignalGuard::SignalGuard() {
  first_signal = 0;
  struct sigaction action{};
  action.sa_handler = &on_signal;
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &previous[i]);
}

SignalGuard::~SignalGuard() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &previous[i], nullptr);
}

int SignalGuard::received() { return first_signal.load(); }

}  // namespace tessera::train
