// SPDX-License-Identifier: Apache-2.0
// TensorBoard's event files, written without TensorFlow: https://www.tensorflow.org/tensorboard.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "tessera/metrics/step_record.hpp"

namespace tessera::metrics {

/// "20261123-0815", local time: what TorchTitan calls the folder of one start of a run, under
/// metrics.save_tb_folder.
std::string tensorboard_stamp();

/// One record of an event file: length, masked CRC-32C of the length, data, masked CRC-32C of the
/// data.
std::string tensorboard_frame(std::string_view data);

class AppendFile;

/// Appends the scalars of steps to an event file of its own. Not thread-safe; one writer for each
/// process.
class TensorBoardWriter {
 public:
  /// Makes `folder` and, in it, events.out.tfevents.SECONDS.HOST.PID. `first_step` > 1: a resumed
  /// run; TensorBoard drops what it knows of that step and later ones. Throws Error(environment)
  /// naming the file.
  TensorBoardWriter(const std::filesystem::path& folder, std::int64_t first_step);
  ~TensorBoardWriter();
  TensorBoardWriter(const TensorBoardWriter&) = delete;
  TensorBoardWriter& operator=(const TensorBoardWriter&) = delete;

  /// A scalar (float32) for each column of metrics.jsonl but "step", under the same name. A value
  /// that is not finite is written for loss and grad_norm only: elsewhere it means that the value
  /// is not known.
  void write(const StepRecord& record);
  /// The run jumps back: what was written of `step` and later ones is void.
  void restart(std::int64_t step);

  const std::filesystem::path& file() const noexcept;

 private:
  std::unique_ptr<AppendFile> out_;
};

}  // namespace tessera::metrics
