// SPDX-License-Identifier: Apache-2.0
// What a DeviceMesh owns; device_mesh.cpp makes it, overview.cpp describes it.
#pragma once

#include <bitset>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tessera/mesh/device_mesh.hpp"

namespace tessera::mesh {

using AxisSet = std::bitset<5>;

struct DeviceMesh::Impl {
  /// by the axes of degree > 1 that they span
  std::map<unsigned long, std::unique_ptr<comm::Communicator>> groups;
  PerAxis<std::unique_ptr<comm::Communicator>> self;  ///< for the axes of degree 1
  std::unique_ptr<comm::Communicator> self_of_many;
  std::unique_ptr<comm::Communicator> upstream;  ///< null: this rank alone
  std::unique_ptr<comm::Communicator> embedding;
  std::unique_ptr<comm::Communicator> experts,
      expert_shards;  ///< null: one of the others, or this rank alone
  std::map<std::pair<comm::Communicator*, int>, std::unique_ptr<comm::Communicator>> neighbours;
  std::unique_ptr<comm::Communicator> own_control;
  comm::Communicator* control = nullptr;
  std::vector<std::string> hosts;  ///< of each rank; empty in a rehearsal

  bool is_rehearsal() const { return own_control != nullptr; }
  void add_self(const Layout& layout);
  void rehearse_experts(const Layout& layout, Rank rank);
  void decorate_with(const Decorate& decorate);
};

}  // namespace tessera::mesh
