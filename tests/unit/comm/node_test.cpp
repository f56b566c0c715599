// SPDX-License-Identifier: Apache-2.0
#include "node.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <string>

namespace tessera::comm {
namespace {

constexpr const char* kVariables[] = {
    "OMPI_COMM_WORLD_LOCAL_SIZE",  "MPI_LOCALNRANKS",    "SLURM_STEP_TASKS_PER_NODE",
    "SLURM_NTASKS_PER_NODE",       "SLURM_CPUS_ON_NODE", "OMPI_MCA_orte_bound_at_launch",
    "OMPI_MCA_mpi_yield_when_idle"};

/// What is decided in an environment that holds just these variables.
std::optional<std::string> yield_in(const std::map<std::string, std::string>& environment) {
  for (const char* name : kVariables) unsetenv(name);
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  yield_when_oversubscribed();
  const char* decided = std::getenv("OMPI_MCA_mpi_yield_when_idle");
  return decided ? std::optional<std::string>(decided) : std::nullopt;
}

TEST(Node, YieldsWhenItHasMoreRanksThanCores) {
  EXPECT_EQ(yield_in({}), std::nullopt);
  EXPECT_EQ(yield_in({{"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}}), std::nullopt);
  EXPECT_EQ(yield_in({{"OMPI_COMM_WORLD_LOCAL_SIZE", "100000"}}), "1");
  EXPECT_EQ(yield_in({{"SLURM_STEP_TASKS_PER_NODE", "8(x2),4"}, {"SLURM_CPUS_ON_NODE", "4"}}), "1");
  EXPECT_EQ(yield_in({{"SLURM_STEP_TASKS_PER_NODE", "8(x2),4"}, {"SLURM_CPUS_ON_NODE", "8"}}),
            std::nullopt);
}

TEST(Node, RespectsTheUserAndTheLauncher) {
  EXPECT_EQ(
      yield_in({{"OMPI_COMM_WORLD_LOCAL_SIZE", "100000"}, {"OMPI_MCA_mpi_yield_when_idle", "0"}}),
      "0");
  // Each rank is bound to cores of its own, so it sees fewer than there are.
  EXPECT_EQ(
      yield_in({{"OMPI_COMM_WORLD_LOCAL_SIZE", "100000"}, {"OMPI_MCA_orte_bound_at_launch", "1"}}),
      std::nullopt);
}

}  // namespace
}  // namespace tessera::comm
