// SPDX-License-Identifier: Apache-2.0
// Runs that others have published, from tests/published/rows.json, as workloads.
#pragma once

#include <string>
#include <vector>

#include "tessera/planner/machine.hpp"
#include "tessera/planner/workload.hpp"

namespace tessera::planner {

struct PublishedRow {
  std::string stack, machine, model;
  Workload work;
  double nic_bytes_per_second = 0;  ///< 0: as the machine's file says
  int nvlink_domain = 0;            ///< likewise
  double tokens_per_second_per_gpu = 0;
  double memory_bytes = 0;  ///< 0: not published
  bool further = false;     ///< added after the constants of all stacks were fitted to others

  /// The machine's file, with what the row says of its links.
  Machine machine_used() const;
};

std::vector<PublishedRow> published_rows();

}  // namespace tessera::planner
