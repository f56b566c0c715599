// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan/placement.hpp"

#include <algorithm>

#include "tessera/base/error.hpp"

namespace tessera::plan {
namespace {

using mesh::Axis;

/// A rank, and the number of ranks.
struct Member {
  int rank = 0, size = 1;
};

/// The members of one rank on the axes that a parameter uses.
struct Members {
  Member tp, fsdp, experts;
};

Member member_of(const std::vector<mesh::Rank>& ranks, mesh::Rank rank) {
  return {static_cast<int>(std::ranges::find(ranks, rank) - ranks.begin()),
          static_cast<int>(ranks.size())};
}

/// Parameters of experts are on ranks of their own; tp is among these unless it cuts each expert.
Members members_of(const model::ParamSpec& spec, const mesh::Layout& layout, mesh::Rank rank) {
  const Member tp = member_of(layout.group_of(rank, {Axis::tp}), rank);
  if (!model::counts_experts(spec.placement))
    return {tp, member_of(layout.group_of(rank, {Axis::dp_shard, Axis::cp}), rank), {}};
  return {layout.experts_cut_by_tp() ? tp : Member{},
          member_of(layout.expert_shard_group_of(rank), rank),
          member_of(layout.expert_group_of(rank), rank)};
}

/// Leaves the member its piece of a dimension.
void cut(Placement& place, const model::ParamSpec& spec, std::size_t dim, Member member) {
  const std::int64_t extent = place.local_shape[dim];
  TESSERA_EXPECT(extent % member.size == 0, "{} ranks share {} of dimension {} of {}", member.size,
                 extent, dim, spec.fqn);
  place.local_shape[dim] = extent / member.size;
  place.local_offset[dim] = member.rank * place.local_shape[dim];
}

void cut_over_tp(Placement& place, const model::ParamSpec& spec, Member tp) {
  const int dim = tp_dimension(spec.placement);
  const bool few = dim >= 0 && spec.max_pieces > 0 && spec.max_pieces < tp.size;
  TESSERA_EXPECT(!few || tp.size % spec.max_pieces == 0, "{} ranks share {} pieces of {}", tp.size,
                 spec.max_pieces, spec.fqn);
  place.tp_copies = dim < 0 ? tp.size : few ? tp.size / spec.max_pieces : 1;
  if (dim >= 0)
    cut(place, spec, static_cast<std::size_t>(dim),
        {tp.rank / place.tp_copies, tp.size / place.tp_copies});
}

/// Most equal parts of an expert [experts, rows, ...] that leave no more of them than ranks.
std::int64_t parts_of(const Shape& shape, int ranks) {
  if (shape.size() < 2 || shape[0] == 0) return 1;
  std::int64_t parts = std::max<std::int64_t>(1, std::min(ranks / shape[0], shape[1]));
  while (shape[1] % parts != 0) --parts;
  return parts;
}

void cut_over_fsdp(Placement& place, const model::ParamSpec& spec, Member fsdp) {
  if (model::counts_experts(spec.placement)) place.parts = parts_of(place.local_shape, fsdp.size);
  const std::int64_t rows = place.shared_shape()[0];
  place.shards = fsdp.size;
  place.chunk_rows = chunk_size(rows, fsdp.size);
  place.rows = chunk_of(rows, fsdp.size, fsdp.rank);
}

/// Numbers the holders of the same rows: tp copies outermost, tied stages innermost.
void number(Placement& place, std::initializer_list<Member> holders) {
  for (const Member& holder : holders) {
    place.replica = place.replica * holder.size + holder.rank;
    place.replicas *= holder.size;
  }
}

}  // namespace

int tp_dimension(model::Placement placement) {
  switch (placement) {
    case model::Placement::column:
    case model::Placement::vocabulary:
      return 0;
    case model::Placement::row:
    case model::Placement::expert_column:
      return 1;
    case model::Placement::expert_row:
      return 2;
    case model::Placement::replicated:
    case model::Placement::shared:
    case model::Placement::expert:
      return -1;
  }
  return -1;
}

bool Placement::reduces_over(ReduceOver what) const {
  return std::ranges::find(reduce_over, what) != reduce_over.end();
}

Shape Placement::shared_shape() const {
  Shape shape = local_shape;
  if (parts > 1) {
    shape[0] *= parts;
    shape[1] /= parts;
  }
  return shape;
}

std::int64_t Placement::row_elements() const {
  return element_count(local_shape) / std::max<std::int64_t>(1, local_shape[0] * parts);
}

TensorSlice Placement::slice(const model::ParamSpec& spec, const std::string& prefix,
                             DType dtype) const {
  TensorSlice slice{prefix + spec.fqn, dtype, spec.global_shape, local_offset, local_shape};
  slice.box.offset[0] += rows.begin / parts;
  slice.box.extent[0] = rows.size;
  if (parts > 1) {  // at most one part of one expert
    slice.box.extent[1] = local_shape[1] / parts;
    slice.box.offset[1] += rows.begin % parts * slice.box.extent[1];
  }
  return slice;
}

Placement place(const model::ParamSpec& spec, const mesh::Layout& layout, mesh::Rank rank,
                const PlacementOptions& options) {
  const Members members = members_of(spec, layout, rank);
  const Member tp = member_of(layout.group_of(rank, {Axis::tp}), rank);
  const Member replicate = member_of(layout.group_of(rank, {Axis::dp_replicate}), rank);
  Placement place;
  place.local_shape = spec.global_shape;
  place.local_offset.assign(spec.global_shape.size(), 0);
  if (members.experts.size > 1) cut(place, spec, 0, members.experts);
  cut_over_tp(place, spec, members.tp);
  cut_over_fsdp(place, spec, members.fsdp);
  number(place, {{tp.rank % place.tp_copies, place.tp_copies},
                 replicate,
                 {options.stage_copy, options.stage_copies}});
  // Ranks of tp that saw the same tokens have the same gradient of a replicated parameter already.
  const bool by_tokens = spec.placement == model::Placement::replicated;
  place.reduce_over = {ReduceOver::fsdp};
  if (replicate.size > 1) place.reduce_over.push_back(ReduceOver::replicate);
  if (place.tp_copies > 1 && (!by_tokens || options.sequence_parallel))
    place.reduce_over.push_back(ReduceOver::tp_copies);
  if (options.stage_copies > 1) place.reduce_over.push_back(ReduceOver::tied);
  return place;
}

}  // namespace tessera::plan
