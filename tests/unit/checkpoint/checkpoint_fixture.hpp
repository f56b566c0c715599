// SPDX-License-Identifier: Apache-2.0
// A folder, one rank, and what tests do with them: save, damage, list.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sample.hpp"
#include "support/error_of.hpp"
#include "support/temporary_folder.hpp"
#include "tessera/checkpoint/checkpoint_reader.hpp"
#include "tessera/checkpoint/inspect.hpp"
#include "tessera/checkpoint/save.hpp"

namespace tessera::checkpoint {

using test::content_of;
using test::put;
using test::TemporaryFolder;

/// What `work` says when it throws an Error of this code; "" when it throws none.
inline std::string message_of(const std::function<void()>& work, ExitCode code) {
  return test::error_if_any(code, work);
}

class Checkpoint : public testing::Test {
 protected:
  SaveOptions options(int keep = 0) const {
    SaveOptions options{folder_.path(), "pp0.r0.s0.cp0.tp0", "pp1.r1.s1.cp1.tp1",
                        "[model]\nname = \"llama3\"\n"};
    options.keep_latest_k = keep;
    return options;
  }
  SaveResult save_step(std::int64_t step, const SaveOptions& with) {
    const auto held = hold(sample_tensors(), {}, 0, true);
    return save(*control_, with, {step, R"({"data_position":4711,"seed":1})"}, views_of(held));
  }
  SaveResult save_step(std::int64_t step) { return save_step(step, options()); }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  void damage(const std::filesystem::path& path, std::size_t at) {
    std::string bytes = content_of(path);
    bytes.at(at) = static_cast<char>(bytes.at(at) ^ 0x40);
    put(path, bytes);
  }
  void damage_data(const std::string& step) {  // the last byte of a shard is a tensor's
    const std::filesystem::path shard = folder_ / step / "shard-pp0.r0.s0.cp0.tp0.h5";
    damage(shard, content_of(shard).size() - 1);
  }
  TemporaryFolder folder_;
  std::unique_ptr<comm::Communicator> control_ = comm::make_self_communicator("control");
  std::vector<std::string> lines_;
  LogLine log_ = [this](const std::string& line) { lines_.push_back(line); };
};

}  // namespace tessera::checkpoint
