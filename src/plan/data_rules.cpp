// SPDX-License-Identifier: Apache-2.0
// Contradictions about data: what is trained on, what is held out, what is validated on.
#include <fmt/format.h>

#include "key_rules.hpp"
#include "tessera/config/datasets.hpp"

namespace tessera::plan {

namespace {

/// Data of this name may be on the machine where the job will run.
bool may_be_elsewhere(const config::Reading& reading, std::string_view key,
                      const std::string& dataset) {
  return reading.files_elsewhere && reading.written(key) && config::is_looked_up(dataset);
}

void check_training(config::Reading& reading) {
  const config::Training& training = reading.resolved.job.training;
  if (!training.dataset_path && training.mixture.empty() && reading.reads_training_data() &&
      !may_be_elsewhere(reading, "training.dataset", training.dataset))
    reading.complain_of(
        {"training.dataset", "training.dataset_path", "training.mixture"},
        reading.written("training.dataset")
            ? fmt::format("training.dataset = \"{}\" needs training.dataset_path: name the file or "
                          "folder to read, or set TESSERA_DATA to a folder that has it; Tessera "
                          "downloads nothing",
                          config::shown(training.dataset))
            : "the job names no data: set training.dataset_path to a file or folder, or "
              "training.dataset to \"c4_test\" for the text that comes with Tessera");
  if (training.mixture.empty()) return;
  if (training.dataset_path)
    reading.complain_of(
        {"training.mixture", "training.dataset_path"},
        fmt::format(
            "training.mixture and training.dataset_path ({}) both set the training data; keep one",
            reading.place_of("training.dataset_path").exact()));
  if (!config::dataset_of(training.dataset).windows)
    reading.complain_of({"training.mixture", "training.dataset"},
                        fmt::format("training.mixture mixes text or tokens; training.dataset is {}",
                                    config::shown(training.dataset)));
}

void check_held_out(config::Reading& reading) {
  const config::Validation& validation = reading.resolved.job.validation;
  if (validation.split == 0) return;
  if (validation.dataset_path)
    reading.complain_of(
        {"validation.split", "validation.dataset_path"},
        fmt::format("validation.split and validation.dataset_path ({}) both set the "
                    "validation data; keep one",
                    reading.place_of("validation.dataset_path").exact()));
  const std::string& dataset = reading.resolved.job.training.dataset;
  if (!config::dataset_of(dataset).windows)
    reading.complain_of({"validation.split", "training.dataset"},
                        fmt::format("validation.split holds out windows of text or tokens; "
                                    "training.dataset is {}",
                                    config::shown(dataset)));
}

void check_validation(config::Reading& reading) {
  const config::Validation& validation = reading.resolved.job.validation;
  if (!validation.enable) return;
  if (!validation.dataset_path && validation.split == 0 &&
      !may_be_elsewhere(reading, "validation.dataset", validation.dataset))
    reading.complain_of(
        {"validation.enable", "validation.dataset_path", "validation.split", "validation.dataset"},
        "validation.enable = true has no data; name validation.dataset_path, or hold out a share "
        "of the training data (validation.split = 0.01): Tessera downloads nothing");
  if (validation.seq_len > reading.resolved.job.training.seq_len)
    reading.complain_of({"validation.seq_len", "training.seq_len", "validation.enable"},
                        fmt::format("validation.seq_len {} is longer than training.seq_len {} ({})",
                                    validation.seq_len, reading.resolved.job.training.seq_len,
                                    reading.place_of("training.seq_len").exact()));
  if (validation.samples && validation.steps != -1)
    reading.complain_of(
        {"validation.samples", "validation.steps", "validation.enable"},
        fmt::format(
            "validation.samples and validation.steps ({}) both set how much is read; keep one",
            reading.place_of("validation.steps").exact()));
}

void check_loader(config::Reading& reading, const config::DataLoader& loader,
                  const std::string& section) {
  if (loader.num_workers > 0) return;
  const std::string workers = section + ".num_workers",
                    persistent = section + ".persistent_workers",
                    ahead = section + ".prefetch_factor";
  if (loader.persistent_workers)
    reading.complain_of({persistent, workers}, fmt::format("{} needs num_workers > 0", persistent));
  if (loader.prefetch_factor)
    reading.complain_of({ahead, workers}, fmt::format("{} needs num_workers > 0", ahead));
}

}  // namespace

void check_data_keys(config::Reading& reading) {
  check_training(reading);
  check_held_out(reading);
  check_validation(reading);
  check_loader(reading, reading.resolved.job.training.dataloader, "training.dataloader");
  check_loader(reading, reading.resolved.job.validation.dataloader, "validation.dataloader");
}

}  // namespace tessera::plan
