// SPDX-License-Identifier: Apache-2.0
#include "tessera/inputs/replay_source.hpp"

#include <algorithm>

#include "tessera/base/error.hpp"
#include "tessera/hf/safetensors.hpp"

namespace tessera::inputs {

ReplaySource::ReplaySource(const std::filesystem::path& file, std::int64_t global_batch,
                           std::int64_t seq_len)
    : file_(file.string()), global_batch_(global_batch), seq_len_(seq_len) {
  const hf::SafetensorsReader reader(file);
  const auto load = [&](const char* name) {
    const TensorInfo* entry = reader.find(name);
    require(
        entry, ExitCode::data,
        "{} has no tensor \"{}\"; a replay file has inputs and labels, int32 [steps, rows, seq]",
        file_, name);
    require(entry->shape.size() == 3 && entry->shape[2] == seq_len, ExitCode::data,
            "{}: \"{}\" must be [steps, rows, {}] (training.seq_len)", file_, name, seq_len);
    require(steps_ == 0 || (entry->shape[0] == steps_ && entry->shape[1] == rows_), ExitCode::data,
            "{}: inputs and {} differ in shape", file_, name);
    steps_ = entry->shape[0];
    rows_ = entry->shape[1];
    std::vector<std::int32_t> values(static_cast<std::size_t>(element_count(entry->shape)));
    reader.read_whole(name, DType::i32, values.data());
    return values;
  };
  inputs_ = load("inputs");
  labels_ = load("labels");
  if (reader.find("documents")) documents_ = load("documents");
  if (global_batch_ == 0) global_batch_ = rows_;
  require(rows_ >= global_batch_, ExitCode::data,
          "{} has {} rows a step; the global batch needs {}", file_, rows_, global_batch_);
}

std::int64_t ReplaySource::first_value(std::int64_t sample) const {
  const std::int64_t step = sample / global_batch_, row = sample % global_batch_;
  require(step < steps_, ExitCode::data, "{} has {} steps; the run needs step {}", file_, steps_,
          step + 1);
  return (step * rows_ + row) * seq_len_;
}

void ReplaySource::read(std::int64_t sample, std::span<std::int32_t> inputs,
                        std::span<std::int32_t> labels) const {
  const std::int64_t begin = first_value(sample);
  std::copy_n(inputs_.begin() + begin, seq_len_, inputs.begin());
  std::copy_n(labels_.begin() + begin, seq_len_, labels.begin());
}

std::vector<std::int64_t> ReplaySource::document_starts(std::int64_t sample) const {
  if (documents_.empty()) return {};
  const auto first = documents_.begin() + first_value(sample);
  std::vector<std::int64_t> starts{0};
  for (std::int64_t t = 1; t < seq_len_; ++t)
    if (first[t] != first[t - 1]) starts.push_back(t);
  return starts;
}

}  // namespace tessera::inputs
