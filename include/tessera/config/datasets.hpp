// SPDX-License-Identifier: Apache-2.0
// The kinds of data that `training.dataset` and `validation.dataset` name: one table for the keys,
// their rules, the check of files and the readers.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tessera::config {

enum class DataKind : std::uint8_t {
  text,    ///< text, JSONL, or token files
  tokens,  ///< token files only
  replay,  ///< the batches of another run
};

struct Dataset {
  std::string_view name;
  DataKind kind;
  /// Whether samples are windows of token files, which can be shuffled, mixed and held out. Other
  /// kinds have a reader in src/inputs/readers.cpp.
  bool windows;
};

inline constexpr std::array kDatasets{
    Dataset{"text", DataKind::text, true},
    Dataset{"tokens", DataKind::tokens, true},
    Dataset{"replay", DataKind::replay, false},
    // TorchTitan's names.
    Dataset{"c4", DataKind::text, true},
    Dataset{"c4_test", DataKind::text, true},
    Dataset{"c4_validation", DataKind::text, true},
};

inline constexpr std::string_view kDatasetHelp =
    "Kind of data in dataset_path: text (plain or JSONL), tokens (`tessera data prepare`), replay "
    "(a safetensors file of batches); TorchTitan's c4 names mean text; of a folder with files of "
    "both, c4 takes c4-train.* and c4_validation takes c4-validation.*; c4_test without a path is "
    "a text that comes with Tessera, if the job names it";

/// Whether a job may name this data without a path: it is looked up where the job runs.
bool is_looked_up(std::string_view dataset);

/// The row of that name. The key's check has let no other name pass.
const Dataset& dataset_of(std::string_view name);

}  // namespace tessera::config
