// SPDX-License-Identifier: Apache-2.0
#include "node.hpp"

#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <initializer_list>

namespace tessera::comm {
namespace {

int number_in(const char* variable) {
  const char* text = std::getenv(variable);
  return text ? std::atoi(text) : 0;
}

}  // namespace

int announced_local_ranks() {
  for (const char* variable : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                               "SLURM_STEP_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE"})
    if (const int ranks = number_in(variable); ranks > 0) return ranks;
  return 0;
}

int announced_ranks() {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (const int ranks = number_in(variable); ranks > 0) return ranks;
  return 0;
}

int shared_cores() {
  if (number_in("OMPI_MCA_orte_bound_at_launch") > 0) return 0;
  const bool under_mpirun = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE") != nullptr;
  if (const int cores = number_in("SLURM_CPUS_ON_NODE"); cores > 0 && !under_mpirun) return cores;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}

bool oversubscribed() {
  const int cores = shared_cores();
  return cores > 0 && announced_local_ranks() > cores;
}

void yield_when_oversubscribed() {
  if (oversubscribed()) setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
}

}  // namespace tessera::comm
