// SPDX-License-Identifier: Apache-2.0
// The pictures in a run's folder: the loss curve, the pipeline's timeline, and the page that shows
// all.
#pragma once

#include "tessera/metrics/run_folder.hpp"
#include "tessera/train/trainer.hpp"

namespace tessera::train {

/// Writes loss.svg, pipeline.svg (where there is a pipeline) and index.html, on rank 0, if the
/// run has a folder yet. A picture
/// that cannot be drawn is a warning: the run itself is done.
void write_run_pictures(const metrics::RunFolder& folder, Trainer& trainer);

}  // namespace tessera::train
