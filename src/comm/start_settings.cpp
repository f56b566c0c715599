// SPDX-License-Identifier: Apache-2.0
#include "start_settings.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "node.hpp"

namespace tessera::comm {
namespace {

bool under_a_launcher() {
  constexpr const char* kVariables[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK",   "PMI_RANK",
                                        "SLURM_PROCID",         "PALS_RANKID", "FLUX_TASK_RANK"};
  return std::ranges::any_of(kVariables, [](const char* name) { return std::getenv(name); });
}

bool all_ranks_on_this_node() {
  if (std::getenv("SLURM_HET_SIZE")) return false;  // counts may be those of a component
  if (const int ranks = announced_ranks(); ranks > 0) return ranks == announced_local_ranks();
  return !under_a_launcher();
}

}  // namespace

StartSettings::StartSettings() {
  if (!all_ranks_on_this_node()) return;
  if (!std::getenv("OMPI_MCA_pml")) set("OMPI_MCA_mtl", "^psm,psm2,ofi");
  if (under_a_launcher()) return;
  set("OMPI_MCA_ess_singleton_isolated", "1");
  if (std::getenv("OMPI_MCA_ess_singleton_isolated") == std::string_view("1"))
    set("OMPI_MCA_orte_create_session_dirs", "0");
}

StartSettings::~StartSettings() {
  for (const std::string& name : names_) unsetenv(name.c_str());
}

void StartSettings::set(const char* name, const char* value) {
  if (std::getenv(name)) return;
  setenv(name, value, 1);
  names_.emplace_back(name);
}

}  // namespace tessera::comm
