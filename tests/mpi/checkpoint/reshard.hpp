// SPDX-License-Identifier: Apache-2.0
// Checkpoints that ranks save with one cut of the tensors and load with another.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "mpi/checkpoint/on_ranks.hpp"
#include "tessera/base/error.hpp"
#include "unit/checkpoint/sample.hpp"

namespace tessera::checkpoint {

class Reshard : public OnRanks {
 protected:
  /// Two ranks pretend to be a node, but for the first and the last one.
  SaveOptions options() const {
    SaveOptions options = OnRanks::options();
    options.node = fmt::format("node {}", (rank() + 1) / 2);
    return options;
  }
  std::filesystem::path save_cut(const Cut& cut, std::int64_t step, bool large = false) {
    const auto held = hold(sample_tensors(large), cut, rank(), true);
    return save(control(), options(), {step}, views_of(held)).folder;
  }
  bool loads(const CheckpointReader& opened, const Cut& cut, bool large = false) {
    const auto held = hold(sample_tensors(large), cut, rank() % cut.ranks(), false);
    load(control(), opened, views_of(held));
    return all_right(held);
  }
  /// The message that every rank threw; a failure when ranks differ.
  static std::string common_message(const std::function<void()>& work, ExitCode code) {
    std::string message = "nothing was thrown";
    try {
      work();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      message = error.what();
    }
    for (const std::string& other : comm::all_gather_strings(control(), message))
      EXPECT_EQ(other, message);
    return message;
  }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_),
                                                  std::filesystem::directory_iterator()));
  }

  std::vector<std::string> shards_of(const std::filesystem::path& step) const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(step))
      if (entry.path().filename().string().starts_with("shard-"))
        names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
};

}  // namespace tessera::checkpoint
