// SPDX-License-Identifier: Apache-2.0
// The first step of a job on one rank, without communication.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <map>
#include <string>

#include "tessera/config/job_config.hpp"
#include "tessera/data/sample_source.hpp"
#include "tessera/model/model.hpp"

namespace tessera::test {

struct FirstStep {
  std::map<std::string, at::Tensor> gradients;  ///< whole, in float64 on the host, by parameter
  double loss = 0;
  double norm = 0;  ///< of all gradients
};

/// On the device that the model is on. The weights are drawn from seed 7.
FirstStep first_step(const config::JobConfig& job, const model::Model& model,
                     const data::SampleSource& source, at::Device device);

}  // namespace tessera::test
