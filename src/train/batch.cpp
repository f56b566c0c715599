#include "tessera/train/batch.hpp"

#include <algorithm>

#include "tessera/base/error.hpp"

namespace tessera::train {
namespace {

/// Rows [rows, seq] of which this rank takes its positions, in one run.
torch::Tensor to_device(const std::vector<std::int32_t>& values, const std::vector<Range>& positions, std::int64_t seq,
                        torch::Device device) {
  const torch::Tensor whole = torch::from_blob(const_cast<std::int32_t*>(values.data()),
                                               {static_cast<std::int64_t>(values.size()) / seq, seq}, torch::kInt32);
  std::vector<torch::Tensor> parts;
  for (const Range& range : positions) parts.push_back(whole.narrow(1, range.begin, range.size));
  return torch::cat(parts, 1).flatten().to(torch::kInt64).to(device);
}

void check_ids(std::span<const std::int32_t> ids, std::int64_t vocab, bool may_ignore, std::int64_t sample) {
  for (const std::int32_t id : ids)
    require((id >= 0 && id < vocab) || (may_ignore && id == -100), ExitCode::data,
            "sample {} holds token {}, but the model's vocabulary has {}; was the data made with another tokenizer?",
            sample, id, vocab);
}

/// Where the documents of one sample begin.
std::vector<std::int64_t> documents_of(const data::SampleSource& source, const BatchPlan& plan, std::int64_t sample,
                                       std::span<const std::int32_t> inputs) {
  if (!plan.document_end_id) return source.document_starts(sample);
  std::vector<std::int64_t> starts{0};
  for (std::size_t t = 0; t + 1 < inputs.size(); ++t)
    if (inputs[t] == *plan.document_end_id) starts.push_back(static_cast<std::int64_t>(t) + 1);
  return starts;
}

}  // namespace

Batch read_batch(const data::SampleSource& source, const BatchPlan& plan, std::int64_t first, const Reader& reader,
                 std::int64_t vocab, torch::Device device) {
  const auto seq = static_cast<std::size_t>(source.seq_len());
  const auto rows = static_cast<std::size_t>(plan.microbatch_rows);
  const std::vector<Range> positions = plan.cut.ranges(reader.cp_rank);
  std::vector<std::int32_t> inputs(rows * seq), labels(rows * seq);
  Batch batch;
  std::int64_t sample = first + reader.dp_rank * plan.rows;
  for (int m = 0; m < plan.microbatches_a_step(); ++m) {
    parallel::Documents documents;
    for (std::size_t row = 0; row < rows; ++row, ++sample) {
      const std::span in(inputs.data() + row * seq, seq), out(labels.data() + row * seq, seq);
      source.read(sample, in, out);
      check_ids(in, vocab, false, sample);
      check_ids(out, vocab, true, sample);
      if (plan.documents) documents.push_back(documents_of(source, plan, sample, in));
    }
    batch.valid_tokens += std::ranges::count_if(labels, [](std::int32_t label) { return label != -100; });
    batch.microbatches.push_back({to_device(inputs, positions, source.seq_len(), device),
                                  to_device(labels, positions, source.seq_len(), device), std::move(documents)});
  }
  return batch;
}

}  // namespace tessera::train
