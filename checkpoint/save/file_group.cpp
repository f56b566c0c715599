// SPDX-License-Identifier: Apache-2.0
#include "save/file_group.hpp"

#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <map>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"

namespace tessera::checkpoint {
namespace {

constexpr long kNfsMagic = 0x6969;  // statfs(2)

/// The host's name and what this boot of it is called: either alone may be the same on two
/// machines.
std::string this_node() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  std::ifstream boot("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(boot, id);
  return fmt::format("{} {}", name.data(), id);
}

}  // namespace

FileGroup::FileGroup(comm::Communicator& control, FileLayout layout, const std::string& node)
    : control_(control), layout_(layout) {
  if (layout == FileLayout::rank) {
    ranks_ = comm::make_self_communicator("checkpoint file");
    return;
  }
  std::map<std::string, int> numbers;  // in the order of the ranks
  const std::string mine = node.empty() ? this_node() : node;
  for (const std::string& name : comm::all_gather_strings(control, mine))
    numbers.emplace(name, static_cast<int>(numbers.size()));
  node_ = numbers.at(mine);
  nodes_ = static_cast<int>(numbers.size());
  if (layout == FileLayout::node) ranks_ = control.split(node_, control.rank(), "checkpoint file");
}

std::string FileGroup::file_name(const std::string& coord_name) const {
  switch (layout_) {
    case FileLayout::rank:
      return fmt::format("shard-{}.h5", coord_name);
    case FileLayout::node:
      return fmt::format("shard-node{}.h5", node_);
    case FileLayout::single:
      return "shard-all.h5";
  }
  return {};
}

void require_coherent(const std::filesystem::path& folder) {
  struct statfs status {};
  if (::statfs(folder.c_str(), &status) != 0)
    fail_errno(ExitCode::checkpoint, "cannot find the file system of", folder, errno);
  require(status.f_type != kNfsMagic, ExitCode::usage,
          "{} is on NFS, where writes of several nodes to one file may be lost; use "
          "checkpoint.files = \"node\" or "
          "\"rank\", or another file system",
          folder.string());
}

}  // namespace tessera::checkpoint
