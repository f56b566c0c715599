// SPDX-License-Identifier: Apache-2.0
#include "start_settings.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

namespace tessera::comm {
namespace {

using Variables = std::map<std::string, std::string>;

constexpr const char* kRead[] = {"OMPI_COMM_WORLD_SIZE",
                                 "OMPI_COMM_WORLD_LOCAL_SIZE",
                                 "MPI_LOCALNRANKS",
                                 "PMIX_RANK",
                                 "PMI_RANK",
                                 "SLURM_PROCID",
                                 "SLURM_STEP_NUM_TASKS",
                                 "SLURM_STEP_TASKS_PER_NODE",
                                 "SLURM_NTASKS_PER_NODE",
                                 "PALS_RANKID",
                                 "FLUX_TASK_RANK",
                                 "SLURM_HET_SIZE",
                                 "OMPI_MCA_pml"};
constexpr const char* kSet[] = {"OMPI_MCA_mtl", "OMPI_MCA_ess_singleton_isolated",
                                "OMPI_MCA_orte_create_session_dirs"};

Variables those_set() {
  Variables out;
  for (const char* name : kSet)
    if (const char* value = std::getenv(name)) out[name] = value;
  return out;
}

void clear() {
  for (const char* name : kRead) unsetenv(name);
  for (const char* name : kSet) unsetenv(name);
}

/// What MPI_Init would read of kSet in an environment that holds just these variables.
Variables settings_in(const Variables& environment) {
  clear();
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  const Variables before = those_set();
  Variables during;
  {
    const StartSettings settings;
    during = those_set();
  }
  EXPECT_EQ(those_set(), before);
  clear();
  return during;
}

const Variables kNoFabric = {{"OMPI_MCA_mtl", "^psm,psm2,ofi"}};

TEST(StartSettings, ProcessAloneStartsNoDaemonAndProbesNoFabric) {
  EXPECT_EQ(settings_in({}), (Variables{{"OMPI_MCA_mtl", "^psm,psm2,ofi"},
                                        {"OMPI_MCA_ess_singleton_isolated", "1"},
                                        {"OMPI_MCA_orte_create_session_dirs", "0"}}));
}

TEST(StartSettings, RanksOfOneNodeProbeNoFabric) {
  EXPECT_EQ(settings_in({{"OMPI_COMM_WORLD_SIZE", "8"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "8"}}),
            kNoFabric);
  EXPECT_EQ(settings_in({{"SLURM_PROCID", "1"},
                         {"SLURM_STEP_NUM_TASKS", "4"},
                         {"SLURM_STEP_TASKS_PER_NODE", "4"}}),
            kNoFabric);
}

TEST(StartSettings, RanksOfSeveralNodesKeepTheirs) {
  EXPECT_EQ(settings_in({{"OMPI_COMM_WORLD_SIZE", "8"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}),
            Variables{});
  EXPECT_EQ(settings_in({{"SLURM_PROCID", "1"},
                         {"SLURM_STEP_NUM_TASKS", "8"},
                         {"SLURM_STEP_TASKS_PER_NODE", "4(x2)"}}),
            Variables{});
  EXPECT_EQ(settings_in({{"PMIX_RANK", "1"}}), Variables{});
  EXPECT_EQ(settings_in({{"SLURM_PROCID", "1"},
                         {"SLURM_STEP_NUM_TASKS", "4"},
                         {"SLURM_STEP_TASKS_PER_NODE", "4"},
                         {"SLURM_HET_SIZE", "2"}}),
            Variables{});
}

TEST(StartSettings, UserSettingsStay) {
  EXPECT_EQ(settings_in({{"OMPI_MCA_mtl", "psm2"}, {"OMPI_MCA_ess_singleton_isolated", "0"}}),
            (Variables{{"OMPI_MCA_mtl", "psm2"}, {"OMPI_MCA_ess_singleton_isolated", "0"}}));
  EXPECT_EQ(settings_in({{"OMPI_MCA_mtl", "psm2"}, {"OMPI_MCA_ess_singleton_isolated", "1"}}),
            (Variables{{"OMPI_MCA_mtl", "psm2"},
                       {"OMPI_MCA_ess_singleton_isolated", "1"},
                       {"OMPI_MCA_orte_create_session_dirs", "0"}}));
  EXPECT_EQ(settings_in({{"OMPI_MCA_pml", "cm"},
                         {"OMPI_COMM_WORLD_SIZE", "8"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "8"}}),
            Variables{});
}

}  // namespace
}  // namespace tessera::comm
