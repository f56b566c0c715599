// SPDX-License-Identifier: Apache-2.0
#include "fixed_rows.hpp"

#include "tessera/kernels/host_copy.hpp"

namespace tessera::train {

FixedRows::FixedRows(parallel::Stages& stages, const mesh::DeviceMesh& mesh) : stages_(stages) {
  for (const schedule::StageIndex stage : stages.map().stages_of(parallel::pipeline_rank(mesh)))
    experts_.push_back(&stages.at(stage).experts());
}

void FixedRows::send(bool fixed) {
  for (parallel::StageExperts* experts : experts_) experts->send_fixed(fixed);
}

std::int64_t FixedRows::overflows() const {
  std::vector<at::Tensor> counts;
  for (const parallel::StageExperts* experts : experts_) counts.push_back(experts->overflows());
  return kernels::HostCopy(at::cat(counts).sum()).wait().item<std::int64_t>();
}

void FixedRows::forget_step() {
  stages_.end_step();
  for (parallel::StageExperts* experts : experts_) experts->forget_step();
}

}  // namespace tessera::train
