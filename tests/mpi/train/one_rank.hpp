// SPDX-License-Identifier: Apache-2.0
// What one rank computes without communication: the reference of every mesh.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <map>
#include <string>

#include "mpi/train/gradient_case.hpp"
#include "tessera/comm/world.hpp"
#include "tessera/config/job_config.hpp"
#include "tessera/data/sample_source.hpp"

namespace tessera::test {

/// Of a first step on one rank, without communication.
struct OneRank {
  std::map<std::string, at::Tensor> gradients;  ///< whole, in float64 on the host, by parameter
  double loss = 0;
  double norm = 0;  ///< of all gradients
};
OneRank on_one_rank(const GradientCase& row, const config::JobConfig& job,
                    const data::SampleSource& source, at::Device device = at::kCPU);

/// `of` on one rank: the same model, data and roundings.
GradientCase alone(const GradientCase& of);

/// What `row` is compared with: computed once in each process that asks for it. Collective over
/// `world`.
const OneRank& reference_for(comm::World& world, const GradientCase& row);

}  // namespace tessera::test
