// SPDX-License-Identifier: Apache-2.0
#include "tessera/mesh/device_mesh.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "impl.hpp"
#include "tessera/base/error.hpp"
#include "tessera/comm/cartesian.hpp"

namespace tessera::mesh {
namespace {

/// The combinations that along() accepts, in the order in which their communicators are made on
/// every rank.
const std::vector<std::vector<Axis>>& combinations() {
  using enum Axis;
  static const std::vector<std::vector<Axis>> all{{pp},
                                                  {dp_replicate},
                                                  {dp_shard},
                                                  {cp},
                                                  {tp},
                                                  {dp_shard, cp},
                                                  {dp_replicate, dp_shard},
                                                  {dp_replicate, dp_shard, cp},
                                                  {cp, tp},
                                                  {dp_shard, cp, tp},
                                                  {pp, tp},
                                                  {dp_replicate, dp_shard, cp, tp},
                                                  {pp, dp_replicate, dp_shard, cp, tp}};
  return all;
}

constexpr std::size_t bit_of(Axis axis) { return static_cast<std::size_t>(axis); }

AxisSet set_of(std::span<const Axis> axes) {
  AxisSet set;
  for (Axis axis : axes) set.set(bit_of(axis));
  return set;
}

/// Two sets span the same ranks exactly when they agree on the axes of degree > 1.
AxisSet spanned(const Layout& layout, AxisSet set) {
  for (Axis axis : kAxes)
    if (layout.degree(axis) == 1) set.reset(bit_of(axis));
  return set;
}

std::string name_of(const Layout& layout, AxisSet set) {
  std::vector<Axis> axes;
  for (Axis axis : kAxes)
    if (set.test(bit_of(axis))) axes.push_back(axis);
  return layout.group_name(axes);
}

/// Distinct rank groups of more than one rank that are smaller than the world, each once.
std::vector<AxisSet> distinct_groups(const Layout& layout) {
  std::vector<AxisSet> groups;
  const AxisSet world = spanned(layout, AxisSet(31));
  for (const auto& axes : combinations()) {
    const AxisSet set = spanned(layout, set_of(axes));
    if (set.none() || set == world || std::find(groups.begin(), groups.end(), set) != groups.end())
      continue;
    groups.push_back(set);
  }
  return groups;
}

std::vector<comm::GridCut> cuts_of(const Layout& layout, const std::vector<AxisSet>& groups) {
  std::vector<comm::GridCut> cuts;
  for (const AxisSet& set : groups) {
    comm::GridCut cut{std::vector<bool>(5), name_of(layout, set)};
    for (std::size_t i = 0; i < 5; ++i) cut.keep[i] = set.test(i);
    cuts.push_back(std::move(cut));
  }
  return cuts;
}

int position(const std::vector<Rank>& ranks, Rank rank) {
  return static_cast<int>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
}

bool ends_pipeline(const Layout& layout, const Coord& coord) {
  return coord[Axis::pp] == 0 || coord[Axis::pp] == layout.degree(Axis::pp) - 1;
}

/// The group of first and last stage where it is not the whole pipeline; null on the stages
/// between. Collective.
std::unique_ptr<comm::Communicator> split_ends(comm::Communicator& root, const Layout& layout,
                                               const Coord& coord) {
  Coord first = coord;
  first[Axis::pp] = 0;
  return root.split(ends_pipeline(layout, coord) ? layout.rank_of(first).value() : -1,
                    coord[Axis::pp], kEmbedding);
}

}  // namespace

DeviceMesh::DeviceMesh(comm::World& world, const Layout& layout, comm::Backend backend,
                       const Decorate& decorate, comm::Memory memory)
    : layout_(layout),
      rank_(world.rank()),
      coord_(layout.coord_of(rank_)),
      impl_(std::make_unique<Impl>()) {
  TESSERA_EXPECT(layout.world() == world.size(), "a mesh of {} over {} ranks", layout.world(),
                 world.size());
  impl_->control = &world.control();
  impl_->hosts = comm::all_gather_strings(world.control(), world.host());
  impl_->add_self(layout_);
  if (layout.world() == 1) return;
  auto root = world.make(backend, name_of(layout, AxisSet(31)), memory);
  const auto groups = distinct_groups(layout);
  auto parts = comm::split_grid(*root, layout.degrees().values, cuts_of(layout, groups));
  for (std::size_t i = 0; i < groups.size(); ++i)
    impl_->groups[groups[i].to_ulong()] = std::move(parts[i]);
  if (layout.degree(Axis::pp) > 2) impl_->embedding = split_ends(*root, layout, coord_);
  if (const int ep = layout.expert_degree(); ep > 1) {
    const std::vector<Rank> peers = layout.expert_group_of(rank_),
                            sharers = layout.expert_shard_group_of(rank_);
    impl_->experts = root->split(peers.front().value(), position(peers, rank_), kExperts);
    impl_->expert_shards =
        root->split(sharers.front().value(), position(sharers, rank_), kExpertShards);
  }
  impl_->groups[spanned(layout, AxisSet(31)).to_ulong()] = std::move(root);
  if (layout.degree(Axis::pp) > 1)
    impl_->upstream = along(Axis::pp).split(0, coord_[Axis::pp], kUpstream);
  if (decorate) impl_->decorate_with(decorate);
}

DeviceMesh::DeviceMesh(const Layout& layout, Rank rank)
    : layout_(layout), rank_(rank), coord_(layout.coord_of(rank)), impl_(std::make_unique<Impl>()) {
  impl_->add_self(layout_);
  impl_->own_control = comm::make_recording_communicator(rank.value(), layout.world(), kWorld);
  impl_->control = impl_->own_control.get();
  for (const auto& axes : combinations()) {
    const AxisSet set = spanned(layout, set_of(axes));
    if (set.none() || impl_->groups.count(set.to_ulong())) continue;
    const std::vector<Rank> ranks = layout.group_of(rank, axes);
    impl_->groups[set.to_ulong()] = comm::make_recording_communicator(
        position(ranks, rank), static_cast<int>(ranks.size()), name_of(layout, set));
  }
  impl_->rehearse_experts(layout, rank);
  if (const int stages = layout.degree(Axis::pp); stages > 1)
    impl_->upstream = comm::make_recording_communicator(coord_[Axis::pp], stages, kUpstream);
  if (layout.degree(Axis::pp) > 2 && ends_pipeline(layout, coord_))
    impl_->embedding =
        comm::make_recording_communicator(coord_[Axis::pp] == 0 ? 0 : 1, 2, kEmbedding);
}

void DeviceMesh::Impl::rehearse_experts(const Layout& layout, Rank rank) {
  if (layout.expert_degree() == 1) return;
  const std::vector<Rank> peers = layout.expert_group_of(rank),
                          sharers = layout.expert_shard_group_of(rank);
  experts = comm::make_recording_communicator(position(peers, rank), static_cast<int>(peers.size()),
                                              kExperts);
  expert_shards = comm::make_recording_communicator(
      position(sharers, rank), static_cast<int>(sharers.size()), kExpertShards);
}

DeviceMesh::~DeviceMesh() = default;

void DeviceMesh::Impl::add_self(const Layout& layout) {
  for (Axis axis : kAxes)
    if (layout.degree(axis) == 1)
      self[axis] = comm::make_self_communicator(std::string(name_of(axis)));
  self_of_many = comm::make_self_communicator("one rank");
}

/// The map has the same keys on every rank, and all ranks have experts or none; only the ends of a
/// pipeline have an embedding group.
void DeviceMesh::Impl::decorate_with(const Decorate& decorate) {
  for (auto& [axes, group] : groups) group = decorate(std::move(group));
  for (auto* other : {&upstream, &experts, &expert_shards, &embedding})
    if (*other) *other = decorate(std::move(*other));
}

comm::Communicator& DeviceMesh::along(Axis axis) {
  return impl_->self[axis] ? *impl_->self[axis] : along(std::vector<Axis>{axis});
}

comm::Communicator& DeviceMesh::upstream() {
  return impl_->upstream ? *impl_->upstream : along(Axis::pp);
}

comm::Communicator& DeviceMesh::along(const std::vector<Axis>& axes) {
  const AxisSet set = spanned(layout_, set_of(axes));
  if (set.none()) return axes.size() == 1 ? along(axes.front()) : *impl_->self_of_many;
  const auto found = impl_->groups.find(set.to_ulong());
  TESSERA_EXPECT(found != impl_->groups.end(),
                 "the mesh has no communicator along {}; add it to combinations()",
                 name_of(layout_, set));
  return *found->second;
}

comm::Communicator& DeviceMesh::neighbours(comm::Communicator& all, int ranks) {
  if (ranks == all.size()) return all;
  auto& group = impl_->neighbours[{&all, ranks}];
  if (group) return *group;
  const std::string name = neighbours_name(ranks, all.axis());
  group = impl_->is_rehearsal() ? comm::make_recording_communicator(all.rank() % ranks, ranks, name)
                                : all.split(all.rank() / ranks, all.rank(), name);
  return *group;
}

std::unique_ptr<comm::Communicator> DeviceMesh::pipeline_pair(int first, int last) {
  comm::Communicator& pipeline = along(Axis::pp);
  const bool member = pipeline.rank() == first || pipeline.rank() == last;
  const int place = pipeline.rank() == first ? 0 : 1;
  if (!impl_->is_rehearsal()) return pipeline.split(member ? 0 : -1, place, kEmbedding);
  return member ? comm::make_recording_communicator(place, 2, kEmbedding) : nullptr;
}

comm::Communicator& DeviceMesh::experts() {
  return impl_->experts ? *impl_->experts : *impl_->self_of_many;
}

comm::Communicator& DeviceMesh::expert_shards() {
  using enum Axis;
  if (impl_->expert_shards) return *impl_->expert_shards;
  return layout_.experts_cut_by_tp() ? along({dp_shard, cp}) : along({dp_shard, cp, tp});
}

comm::Communicator* DeviceMesh::embedding_group() {
  if (layout_.degree(Axis::pp) <= 2) return &along(Axis::pp);
  return impl_->embedding.get();
}

void DeviceMesh::visit(const std::function<void(const comm::Communicator&)>& look) const {
  if (impl_->control) look(*impl_->control);
  for (const auto& [axes, group] : impl_->groups) look(*group);
  for (const auto* other :
       {&impl_->upstream, &impl_->experts, &impl_->expert_shards, &impl_->embedding})
    if (*other) look(**other);
  for (const auto& [key, group] : impl_->neighbours) look(*group);
}

comm::Communicator& DeviceMesh::control() { return *impl_->control; }

}  // namespace tessera::mesh
