// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/signals.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

namespace tessera::train {
namespace {

/// What a process ends with that does this; 0 if it comes to its end.
int code_of(const std::function<void()>& life) {
  const pid_t child = fork();
  if (child == 0) {
    life();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void wait_for_another_wish() { usleep(1'100'000); }

TEST(Signals, TheFirstIsRememberedAndWhatComesAtOnceIsTheSameWish) {
  EXPECT_EQ(code_of([] {
              const SignalGuard guard;
              raise(SIGTERM);
              raise(SIGINT);
              if (SignalGuard::received() != SIGTERM) _exit(1);
            }),
            0);
}

TEST(Signals, ASecondOneEndsTheProcess) {
  for (const auto& [signal, code] :
       {std::pair{SIGINT, 130}, {SIGTERM, 143}, {SIGUSR1, 143}, {SIGUSR2, 143}})
    EXPECT_EQ(code_of([signal = signal] {
                const SignalGuard guard;
                raise(SIGUSR1);
                wait_for_another_wish();
                raise(signal);
              }),
              code);
}

TEST(Signals, TheFirstOneIsAnsweredAtOnceAndOnce) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(code_of([&] {
              dup2(ends[1], STDERR_FILENO);
              const SignalGuard guard;
              SignalGuard::answer_with("saving after this step\n");
              raise(SIGTERM);
              raise(SIGTERM);
            }),
            0);
  close(ends[1]);
  char text[100];
  EXPECT_EQ(std::string(text, static_cast<std::size_t>(read(ends[0], text, sizeof(text)))),
            "saving after this step\n");
  close(ends[0]);
}

TEST(Signals, WhatWasDecidedStays) {
  EXPECT_EQ(code_of([] {
              const SignalGuard guard;
              SignalGuard::decide(75);
              raise(SIGTERM);
              wait_for_another_wish();
              raise(SIGTERM);
            }),
            75);
}

TEST(Signals, AGuardInsideAnotherChangesNothing) {
  EXPECT_EQ(code_of([] {
              const SignalGuard outer;
              raise(SIGTERM);
              { const SignalGuard inner; }
              if (SignalGuard::received() != SIGTERM) _exit(1);
              raise(SIGTERM);
            }),
            0);
  EXPECT_EQ(code_of([] {
              { const SignalGuard guard; }
              raise(SIGTERM);
            }),
            128 + SIGTERM);
}

}  // namespace
}  // namespace tessera::train
