#include "tessera/train/batch.hpp"

#include <algorithm>

#include "tessera/base/error.hpp"

namespace tessera::train {
namespace {

torch::Tensor to_device(const std::vector<std::int32_t>& values, torch::Device device) {
  const auto count = static_cast<std::int64_t>(values.size());
  return torch::from_blob(const_cast<std::int32_t*>(values.data()), {count}, torch::kInt32).to(torch::kInt64).to(device);
}

void check_ids(std::span<const std::int32_t> ids, std::int64_t vocab, bool may_ignore, std::int64_t sample) {
  for (const std::int32_t id : ids)
    require((id >= 0 && id < vocab) || (may_ignore && id == -100), ExitCode::data,
            "sample {} holds token {}, but the model's vocabulary has {}; was the data made with another tokenizer?", sample, id, vocab);
}

}  // namespace

Batch read_batch(const data::SampleSource& source, const BatchPlan& plan, std::int64_t step, int dp_rank, std::int64_t vocab,
                 torch::Device device) {
  const auto seq = static_cast<std::size_t>(source.seq_len());
  const auto rows = static_cast<std::size_t>(plan.microbatch_rows);
  std::vector<std::int32_t> inputs(rows * seq), labels(rows * seq);
  Batch batch;
  std::int64_t sample = step * plan.global_batch + dp_rank * plan.rows;
  for (int m = 0; m < plan.microbatches_a_step(); ++m) {
    for (std::size_t row = 0; row < rows; ++row, ++sample) {
      const std::span in(inputs.data() + row * seq, seq), out(labels.data() + row * seq, seq);
      source.read(sample, in, out);
      check_ids(in, vocab, false, sample);
      check_ids(out, vocab, true, sample);
    }
    batch.valid_tokens += std::ranges::count_if(labels, [](std::int32_t label) { return label != -100; });
    batch.microbatches.push_back({to_device(inputs, device), to_device(labels, device)});
  }
  return batch;
}

}  // namespace tessera::train
