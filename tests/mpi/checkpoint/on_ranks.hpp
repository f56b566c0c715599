// SPDX-License-Identifier: Apache-2.0
// What tests of checkpoints on several ranks share: a folder that all see, and options to save into
// it.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "mpi/comm/mpi_main.hpp"
#include "support/temporary_folder.hpp"
#include "tessera/checkpoint/checkpoint_reader.hpp"
#include "tessera/checkpoint/save.hpp"

namespace tessera::checkpoint {

using test::content_of;
using test::put;
using test::TemporaryFolder;

class OnRanks : public testing::Test {
 protected:
  OnRanks() : folder_(comm::broadcast_string(control(), own_.path().string(), 0)) {}
  ~OnRanks() override { control().barrier(); }  // rank 0 owns the folder
  static comm::Communicator& control() { return test::world().control(); }
  static int rank() { return control().rank(); }
  static int ranks() { return control().size(); }

  SaveOptions options() const {
    SaveOptions options{folder_, fmt::format("pp0.r0.s{}.cp0.tp0", rank()), "test", ""};
    options.files = files_;
    return options;
  }

  TemporaryFolder own_;
  std::filesystem::path folder_;
  FileLayout files_ = FileLayout::rank;
};

}  // namespace tessera::checkpoint
