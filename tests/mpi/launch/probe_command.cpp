// SPDX-License-Identifier: Apache-2.0
// launch_probe probe return CODE | crash | threads | checkpoint | saved | deaf | stubborn
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "command.hpp"
#include "tessera/comm/rank_record.hpp"
#include "tessera/comm/world.hpp"

namespace {

using tessera::app::Args;

volatile sig_atomic_t asked = 0;

/// Says "ready" once all ranks are here.
void ready(tessera::comm::World& world) {
  world.control().barrier();
  if (world.rank() == 0) std::printf("ready\n"), std::fflush(stdout);
}

int wait_for_request(tessera::comm::World& world) {
  signal(SIGUSR1, [](int) { asked = 1; });
  ready(world);
  while (!asked) usleep(1000);
  sleep(2);  // longer than mpirun would give after a SIGTERM
  world.control().barrier();
  return 75;
}

/// Is asked to end, says "saved", and then takes its time.
[[noreturn]] void save_and_linger(tessera::comm::World& world) {
  signal(SIGUSR1, [](int) { asked = 1; });
  signal(SIGTERM, SIG_IGN);
  ready(world);
  while (!asked) usleep(1000);
  tessera::comm::rank_record::note_code(75);
  world.control().barrier();
  if (world.rank() == 0) std::printf("saved\n"), std::fflush(stdout);
  for (;;) pause();
}

[[noreturn]] void refuse_to_end(tessera::comm::World& world) {
  for (const int number : {SIGUSR1, SIGTERM, SIGINT}) signal(number, SIG_IGN);
  ready(world);
  for (;;) pause();
}

int run(const Args& args) {
  tessera::comm::World world(nullptr, nullptr);
  const std::string& what = args.at(0);
  if (what == "return") return std::atoi(args.at(1).c_str());
  if (what == "threads") {
    if (world.rank() == 0)
      std::printf("ranks %d threads %s\n", world.size(), std::getenv("OMP_NUM_THREADS"));
    return 0;
  }
  if (what == "crash") {
    if (world.rank() == world.size() - 1) raise(SIGKILL);
    world.control().barrier();
  }
  if (what == "checkpoint") return wait_for_request(world);
  if (what == "saved") save_and_linger(world);
  if (what == "deaf") {
    ready(world);
    for (;;) pause();
  }
  refuse_to_end(world);
}

const tessera::app::CommandRegistration registration{"probe", "for tests", &run};

}  // namespace
