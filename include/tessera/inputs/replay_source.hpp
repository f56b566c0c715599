// SPDX-License-Identifier: Apache-2.0
// training.dataset = "replay": batches from a safetensors file, so that any framework's run can be
// repeated exactly.
#pragma once

#include <filesystem>
#include <vector>

#include "tessera/data/sample_source.hpp"

namespace tessera::inputs {

/// `inputs` and `labels`, int32 [steps, rows, seq]; row r of step s is sample s * global_batch + r.
/// Global batch 0: all rows count. `documents`, of the same type and shape, may be there: a number
/// that changes where a document begins.
class ReplaySource final : public data::SampleSource {
 public:
  /// Throws Error(data) when the file lacks the tensors, has other shapes than `seq_len` asks for,
  /// or too few rows.
  ReplaySource(const std::filesystem::path& file, std::int64_t global_batch, std::int64_t seq_len);

  std::int64_t seq_len() const override { return seq_len_; }
  std::optional<std::int64_t> sample_limit() const override { return steps_ * global_batch_; }
  void read(std::int64_t sample, std::span<std::int32_t> inputs,
            std::span<std::int32_t> labels) const override;
  std::vector<std::int64_t> document_starts(std::int64_t sample) const override;

 private:
  std::int64_t first_value(std::int64_t sample) const;

  std::string file_;
  std::int64_t global_batch_, seq_len_, steps_ = 0, rows_ = 0;
  std::vector<std::int32_t> inputs_, labels_, documents_;
};

}  // namespace tessera::inputs
