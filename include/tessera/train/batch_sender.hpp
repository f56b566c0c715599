// SPDX-License-Identifier: Apache-2.0
// The batches of a run on their way from a source to the device.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <cstdint>
#include <optional>
#include <utility>

#include "tessera/kernels/side_stream.hpp"
#include "tessera/train/batch.hpp"

namespace tessera::train {

/// A tensor that two streams use. LibTorch records events when such memory is freed, and throws
/// where the GPU has failed. While an error is on its way, that would end the process: the memory
/// is kept instead.
class SharedByStreams {
 public:
  SharedByStreams() = default;
  explicit SharedByStreams(at::Tensor tensor) : tensor_(std::move(tensor)) {}
  SharedByStreams(SharedByStreams&&) = default;
  SharedByStreams& operator=(SharedByStreams&&) = default;
  ~SharedByStreams();

  const at::Tensor& operator*() const { return tensor_; }

 private:
  at::Tensor tensor_;
};

/// A step's rows, and their tokens on their way to the device.
struct SentBatch {
  std::int64_t first = 0;  ///< sample
  Rows rows;
  SharedByStreams ids;  ///< int64: inputs, and then labels; those that are not needed are missing
  kernels::SideStream::Mark arrived;
};

/// Reads steps ahead, and sends them on a stream of its own: no copy waits for what the device
/// computes meanwhile.
class BatchSender {
 public:
  /// The source must outlive this.
  BatchSender(const data::SampleSource& source, const Reader& reader, std::int64_t vocab,
              plan::ReadAheadPlan ahead, at::Device device)
      : ahead_(source, reader, vocab, ahead), device_(device), copies_(device) {}

  /// The step that begins with sample `first`, as ReadAhead::take has it.
  SentBatch take(const plan::BatchPlan& plan, std::int64_t first, std::int64_t end);
  /// Sends the step that take() will be asked for next; on the host, where nothing travels, does
  /// nothing. An error is left to take(). To be called when the device has enough to do: waits
  /// until the rows are read.
  void send_next(const plan::BatchPlan& plan, std::int64_t first, std::int64_t end);

 private:
  SentBatch send(Rows rows, std::int64_t first, bool pinned);

  ReadAhead ahead_;
  at::Device device_;
  kernels::SideStream copies_;
  std::optional<SentBatch> next_;
};

/// Its microbatches; what the current stream is given from now on waits for the tokens.
Batch batch_of(const SentBatch& sent, const plan::BatchPlan& plan);

}  // namespace tessera::train
