// SPDX-License-Identifier: Apache-2.0
// Contradictions about data: what is trained on, what is held out, what is validated on.
#include <fmt/format.h>

#include <set>

#include "draft.hpp"
#include "tessera/config/mixture.hpp"

namespace tessera::config {

namespace {

/// Datasets that are nothing without a path; TorchTitan's names are left to the start of a run.
bool needs_path(const std::string& dataset) {
  return dataset == "text" || dataset == "tokens" || dataset == "replay";
}

void check_training(Draft& draft) {
  const Training& training = draft.job.training;
  if (training.mixture.empty()) {
    if (needs_path(training.dataset) && !training.dataset_path)
      draft.complain_of(
          {"training.dataset", "training.dataset_path", "training.mixture"},
          fmt::format("training.dataset = \"{}\" needs training.dataset_path", training.dataset));
    return;
  }
  if (training.dataset_path)
    draft.complain_of(
        {"training.mixture", "training.dataset_path"},
        fmt::format(
            "training.mixture and training.dataset_path ({}) both set the training data; keep one",
            draft.place_of("training.dataset_path").exact()));
  if (training.dataset == "replay")
    draft.complain_of({"training.mixture", "training.dataset"},
                      "training.mixture mixes text or tokens; training.dataset is \"replay\"");
}

void check_mixture(Draft& draft) {
  std::set<std::string> names;
  for (const Strings& row : draft.job.training.mixture) {
    const auto entry = mixture_entry(row);
    if (!entry) {
      draft.complain_of(
          {"training.mixture"},
          fmt::format(
              "a source of training.mixture needs a path and a weight above 0, not '{}' and '{}'",
              shown(row.empty() ? "" : row[0]), shown(row.size() < 2 ? "" : row[1])));
    } else if (!names.insert(entry->name).second) {
      draft.complain_of(
          {"training.mixture"},
          fmt::format("two sources of training.mixture have the name '{}'; give each its own name",
                      shown(entry->name)));
    }
  }
}

void check_held_out(Draft& draft) {
  const Validation& validation = draft.job.validation;
  if (validation.split == 0) return;
  if (validation.dataset_path)
    draft.complain_of({"validation.split", "validation.dataset_path"},
                      fmt::format("validation.split and validation.dataset_path ({}) both set the "
                                  "validation data; keep one",
                                  draft.place_of("validation.dataset_path").exact()));
  if (draft.job.training.dataset == "replay")
    draft.complain_of(
        {"validation.split", "training.dataset"},
        "validation.split holds out windows of text or tokens; training.dataset is \"replay\"");
}

void check_validation(Draft& draft) {
  const Validation& validation = draft.job.validation;
  if (!validation.enable) return;
  if (needs_path(validation.dataset) && !validation.dataset_path)
    draft.complain_of({"validation.dataset", "validation.dataset_path", "validation.enable"},
                      fmt::format("validation.dataset = \"{}\" needs validation.dataset_path",
                                  validation.dataset));
  if (validation.seq_len > draft.job.training.seq_len)
    draft.complain_of({"validation.seq_len", "training.seq_len", "validation.enable"},
                      fmt::format("validation.seq_len {} is longer than training.seq_len {} ({})",
                                  validation.seq_len, draft.job.training.seq_len,
                                  draft.place_of("training.seq_len").exact()));
  if (validation.samples && validation.steps != -1)
    draft.complain_of(
        {"validation.samples", "validation.steps", "validation.enable"},
        fmt::format(
            "validation.samples and validation.steps ({}) both set how much is read; keep one",
            draft.place_of("validation.steps").exact()));
}

void check_loader(Draft& draft, const DataLoader& loader, const std::string& section) {
  if (loader.num_workers > 0) return;
  const std::string workers = section + ".num_workers",
                    persistent = section + ".persistent_workers",
                    ahead = section + ".prefetch_factor";
  if (loader.persistent_workers)
    draft.complain_of({persistent, workers}, fmt::format("{} needs num_workers > 0", persistent));
  if (loader.prefetch_factor)
    draft.complain_of({ahead, workers}, fmt::format("{} needs num_workers > 0", ahead));
}

}  // namespace

void check_data(Draft& draft) {
  check_training(draft);
  check_mixture(draft);
  check_held_out(draft);
  check_validation(draft);
  check_loader(draft, draft.job.training.dataloader, "training.dataloader");
  check_loader(draft, draft.job.validation.dataloader, "validation.dataloader");
}

}  // namespace tessera::config
