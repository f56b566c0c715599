// SPDX-License-Identifier: Apache-2.0
// The readers of data that is not cut into windows of token files.
#pragma once

#include <filesystem>
#include <memory>

#include "tessera/config/datasets.hpp"
#include "tessera/data/sample_source.hpp"

namespace tessera::inputs {

/// What a job wants of a reader.
struct ReaderOptions {
  std::int64_t seq_len = 0;
  std::int64_t global_batch = 0;  ///< sequences of a step; 0: no steps, as in validation
};

/// Throws Error(data) for a file of text where the kind wants token files.
void require_text_is_read(config::DataKind kind, const std::filesystem::path& text);

/// Opens the file or folder. Throws Error(data) where it does not hold what `options` ask for.
std::unique_ptr<data::SampleSource> open_reader(config::DataKind kind,
                                                const std::filesystem::path& path,
                                                const ReaderOptions& options);

}  // namespace tessera::inputs
