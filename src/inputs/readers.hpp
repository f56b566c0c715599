// SPDX-License-Identifier: Apache-2.0
// The readers of data that is not cut into windows of token files.
#pragma once

#include <filesystem>
#include <memory>

#include "tessera/config/datasets.hpp"
#include "tessera/data/sample_source.hpp"
#include "tessera/plan/data_plan.hpp"

namespace tessera::inputs {

/// What a job wants of a reader.
struct ReaderOptions {
  std::int64_t seq_len = 0;
  std::int64_t global_batch = 0;  ///< sequences of a step; 0: no steps, as in validation
  bool marks_documents = false;   ///< it must say where documents begin
};

/// Throws Error(data) for a file of text where the kind wants token files.
void require_text_is_read(config::DataKind kind, const std::filesystem::path& text);

/// Must a source of this job's data mark documents?
bool marks_documents(const plan::DataPlan& plan);

/// Opens the file or folder. Throws Error(data) where it does not hold what `options` ask for,
/// Error(usage) where documents should be marked and are not.
std::unique_ptr<data::SampleSource> open_reader(config::DataKind kind,
                                                const std::filesystem::path& path,
                                                const ReaderOptions& options);

}  // namespace tessera::inputs
