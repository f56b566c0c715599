// SPDX-License-Identifier: Apache-2.0
// RUN/index.html: a training run on one page.
#pragma once

#include <filesystem>
#include <string>

#include "tessera/report/run.hpp"

namespace tessera::report {

/// Loss, learning rate, gradient norm and throughput with a mark at each resume; where the time
/// goes; the pipeline (RUN/pipeline.svg); what the model wrote (RUN/sample.txt); attempts, skipped
/// steps, and settings that are not the defaults. What a run does not have is omitted. `page`:
/// where the file will be, for its links to the run's files.
std::string run_page(const TrainingRun& run, const std::filesystem::path& page);

/// Reads the run and writes the page; an old page is replaced. Throws as read_run does, and
/// Error(environment) where the page cannot be written.
void write_run_page(const std::filesystem::path& folder, const std::filesystem::path& page);

}  // namespace tessera::report
