// SPDX-License-Identifier: Apache-2.0
// Pictures of a planned job, as SVG and as pages.
#pragma once

#include <string>
#include <vector>

#include "tessera/planner/roofline.hpp"
#include "tessera/planner/scaling.hpp"
#include "tessera/planner/step_memory.hpp"

namespace tessera::app {

/// What `tessera plan --picture` draws.
const std::vector<std::string>& picture_names();

struct PicturedJob {
  const config::Resolved& job;
  const planner::Workload& work;
  const planner::Machine& machine;
  const planner::Stack& stack;
};
/// "llama3 8B on 8 x h100-700w".
std::string name_of(const PicturedJob& job);
/// `name`: one of picture_names().
std::string picture_of(const std::string& name, const PicturedJob& job);

/// A page with the picture, and all figures of the job's price in tables.
std::string picture_page(const std::string& name, const PicturedJob& job,
                         const planner::Price& price);

/// Ranks of the pipeline as rows, time to the right, what does not change below the activations.
std::string memory_picture(const PicturedJob& job);
/// Tokens/s of a GPU by their number: with a batch that grows with them, and with the job's.
std::string scaling_picture(const PicturedJob& job);
/// Kernels by FLOPs for each byte, below what the machine can do.
std::string roofline_picture(const PicturedJob& job);
/// Ranks of the pipeline as rows, and the microbatches that they compute.
std::string timeline_picture(const PicturedJob& job);

}  // namespace tessera::app
