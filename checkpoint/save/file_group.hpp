// SPDX-License-Identifier: Apache-2.0
// Which ranks write one shard file together.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "tessera/checkpoint/save.hpp"
#include "tessera/comm/communicator.hpp"

namespace tessera::checkpoint {

class FileGroup {
 public:
  /// Collective over `control`, which must outlive the group: ranks that gave the same `node` are
  /// on one machine; an empty one means what the operating system says.
  FileGroup(comm::Communicator& control, FileLayout layout, const std::string& node);

  /// Those that write this rank's file, in the order of their ranks in the job.
  comm::Communicator& ranks() const { return layout_ == FileLayout::single ? control_ : *ranks_; }
  /// True on all ranks alike: some file of the job, not always this rank's, is written by several.
  bool is_shared() const {
    return layout_ == FileLayout::single ? control_.size() > 1
                                         : layout_ == FileLayout::node && nodes_ < control_.size();
  }
  /// True when ranks of several machines write one file.
  bool spans_nodes() const { return layout_ == FileLayout::single && nodes_ > 1; }
  FileLayout layout() const { return layout_; }
  /// "shard-pp0.r0.s0.cp0.tp0.h5" for the coordinate in it, "shard-node3.h5" or "shard-all.h5".
  std::string file_name(const std::string& coord_name) const;

 private:
  comm::Communicator& control_;
  FileLayout layout_;
  std::unique_ptr<comm::Communicator> ranks_;
  int node_ = 0, nodes_ = 1;  ///< number of this rank's machine, and of all of them
};

/// Error(usage) when the file system of `folder` does not keep what several machines write into one
/// file apart (NFS).
void require_coherent(const std::filesystem::path& folder);

}  // namespace tessera::checkpoint
