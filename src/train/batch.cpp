// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/batch.hpp"

#include <algorithm>
#include <chrono>

#include "tessera/base/error.hpp"

namespace tessera::train {
namespace {

void check_ids(std::span<const std::int32_t> ids, std::int64_t vocab, bool may_ignore,
               std::int64_t sample) {
  for (const std::int32_t id : ids)
    require((id >= 0 && id < vocab) || (may_ignore && id == -100), ExitCode::data,
            "sample {} has the token {}, but the model's vocabulary has {}; was the data made with "
            "another tokenizer?",
            sample, id, vocab);
}

/// Where the documents of one sample begin.
std::vector<std::int64_t> documents_of(const data::SampleSource& source,
                                       const plan::BatchPlan& plan, std::int64_t sample) {
  if (!plan.document_end_id) return source.document_starts(sample);
  std::vector<std::int32_t> inputs(static_cast<std::size_t>(source.seq_len()));
  source.read_part(sample, {0, source.seq_len()}, inputs, {});
  std::vector<std::int64_t> starts{0};
  for (std::size_t t = 0; t + 1 < inputs.size(); ++t)
    if (inputs[t] == *plan.document_end_id) starts.push_back(static_cast<std::int64_t>(t) + 1);
  return starts;
}

/// Some of the values; none where there are none.
std::span<std::int32_t> part(std::vector<std::int32_t>& values, std::int64_t begin,
                             std::int64_t size) {
  if (values.empty()) return {};
  return {values.data() + begin, static_cast<std::size_t>(size)};
}

/// Part `number` of a step's values in parts of `size`; undefined where there are no values.
at::Tensor part(const at::Tensor& values, std::int64_t number, std::int64_t size) {
  return values.numel() == 0 ? at::Tensor() : values.narrow(0, number * size, size);
}

}  // namespace

Rows read_rows(const data::SampleSource& source, const plan::BatchPlan& plan, std::int64_t first,
               const Reader& reader, std::int64_t vocab) {
  const std::vector<Range> ranges = plan.cut.ranges(reader.cp_rank);
  const auto values = static_cast<std::size_t>(plan.rows * plan.cut.positions());
  Rows rows{std::vector<std::int32_t>(reader.inputs ? values : 0),
            std::vector<std::int32_t>(reader.labels ? values : 0),
            {}};
  std::int64_t at = 0;
  for (std::int64_t row = 0; row < plan.rows; ++row) {
    const std::int64_t sample = first + reader.dp_rank * plan.rows + row;
    for (const Range& range : ranges) {
      const auto in = part(rows.inputs, at, range.size), out = part(rows.labels, at, range.size);
      if (reader.inputs || reader.labels) source.read_part(sample, range, in, out);
      check_ids(in, vocab, false, sample);
      check_ids(out, vocab, true, sample);
      at += range.size;
    }
    if (plan.documents) rows.documents.push_back(documents_of(source, plan, sample));
  }
  return rows;
}

Batch batch_of(const Rows& rows, const at::Tensor& ids, const plan::BatchPlan& plan) {
  Batch batch;
  const std::int64_t each = plan.microbatch_rows, size = each * plan.cut.positions();
  batch.ids = ids;
  const at::Tensor inputs = ids.narrow(0, 0, std::ssize(rows.inputs)),
                   labels = ids.narrow(0, inputs.numel(), std::ssize(rows.labels));
  for (int m = 0; m < plan.microbatches_a_step(); ++m) {
    parallel::Documents documents;
    if (plan.documents)
      documents.assign(rows.documents.begin() + m * each, rows.documents.begin() + (m + 1) * each);
    batch.microbatches.push_back(
        {part(inputs, m, size), part(labels, m, size), std::move(documents)});
  }
  batch.valid_tokens =
      std::ranges::count_if(rows.labels, [](std::int32_t label) { return label != -100; });
  return batch;
}

Rows ReadAhead::take(const plan::BatchPlan& plan, std::int64_t first, std::int64_t end) {
  while (!pending_.empty() && pending_.front().first != first) pending_.pop_front();
  std::optional<std::future<Rows>> here;
  if (!pending_.empty()) {
    here = std::move(pending_.front().rows);
    pending_.pop_front();
  }
  std::int64_t next = (pending_.empty() ? first : pending_.back().first) + plan.global_batch;
  auto reading = std::ranges::count_if(pending_, [](const Pending& step) {
    return step.rows.wait_for(std::chrono::seconds(0)) == std::future_status::timeout;
  });
  if (here && here->wait_for(std::chrono::seconds(0)) == std::future_status::timeout) ++reading;
  for (; std::ssize(pending_) < ahead_.steps && reading < ahead_.threads && next < end;
       next += plan.global_batch, ++reading)
    pending_.push_back({next, std::async(std::launch::async, [this, plan, next] {
                          return read_rows(source_, plan, next, reader_, vocab_);
                        })});
  return here ? here->get() : read_rows(source_, plan, first, reader_, vocab_);
}

}  // namespace tessera::train
