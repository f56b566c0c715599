// SPDX-License-Identifier: Apache-2.0
// The loss over data that is not trained on.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tessera/data/padded_source.hpp"
#include "tessera/mesh/device_mesh.hpp"
#include "tessera/model/model.hpp"
#include "tessera/parallel/executor.hpp"
#include "tessera/train/batch.hpp"

namespace tessera::train {

/// The same on every rank.
struct ValidationResult {
  /// cross-entropy summed over the valid tokens, divided by their number; NaN without any
  double loss = 0;
  std::int64_t tokens = 0, samples = 0;  ///< that counted
  double seconds = 0;
  std::vector<std::pair<std::string, double>> parts;  ///< losses of a mixture's parts
};

/// Reads the first samples of the validation data each time, in their order: all of them,
/// validation.samples, or validation.steps batches. Token losses are summed exactly, so that a mesh
/// changes the result by no more than the rounding of its token losses. Forward only; parameters,
/// optimizer, data position and experts' loads stay as they are, and training continues with the
/// same bits.
class Validator {
 public:
  /// `data` has a plan of validation, and `source` ends. All must outlive this.
  Validator(const plan::DataPlan& data, const model::ModelSpec& model, mesh::DeviceMesh& mesh,
            parallel::Stages& stages, const data::SampleSource& source);

  /// After step `step` (from 1)? After the first and each multiple of validation.freq, as
  /// TorchTitan does.
  bool due(std::int64_t step) const { return step == 1 || step % plan_.freq == 0; }
  /// Collective. `step` is for the watchdog's reports.
  ValidationResult run(std::int64_t step);
  std::int64_t samples() const { return samples_; }

 private:
  const plan::ValidationPlan& plan_;
  const model::ModelSpec& model_;
  mesh::DeviceMesh& mesh_;
  parallel::Stages& stages_;
  const data::SampleSource& source_;
  std::int64_t samples_;
  data::PaddedSource padded_;
  schedule::ActionLists lists_;
  parallel::Executor executor_;
};

}  // namespace tessera::train
