// SPDX-License-Identifier: Apache-2.0
// The mesh as a value: degrees and rank arithmetic, no communication.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/index.hpp"

namespace tessera::mesh {

/// Axes from outer to inner; tp is fastest, so that its ranks are neighbours inside a node.
enum class Axis : std::uint8_t { pp, dp_replicate, dp_shard, cp, tp };
inline constexpr std::array<Axis, 5> kAxes{Axis::pp, Axis::dp_replicate, Axis::dp_shard, Axis::cp,
                                           Axis::tp};
std::string_view name_of(Axis axis) noexcept;
/// Names of communicators that are not of one axis, as in traces and metrics: DeviceMesh's
/// upstream(), pipeline_pair(), experts(), expert_shards() and control().
inline constexpr const char* kUpstream = "pp upstream";
inline constexpr const char* kEmbedding = "embedding";
inline constexpr const char* kExperts = "ep";
inline constexpr const char* kExpertShards = "efsdp";
inline constexpr const char* kWorld = "world";
/// Of `ranks` neighbours among those of the group called `of`.
std::string neighbours_name(int ranks, const std::string& of);

/// One value for each axis, in the order of kAxes.
template <class T>
struct PerAxis {
  std::array<T, kAxes.size()> values{};

  constexpr T& operator[](Axis axis) { return values[static_cast<std::size_t>(axis)]; }
  constexpr const T& operator[](Axis axis) const { return values[static_cast<std::size_t>(axis)]; }
  auto operator<=>(const PerAxis&) const = default;
};

/// A rank of the whole mesh.
using Rank = Index<struct RankKind>;

/// Degrees of the axes in the order of kAxes, as configured; one of them may be -1: "the rest".
struct Degrees {
  int pp = 1, dp_replicate = 1, dp_shard = -1, cp = 1, tp = 1;
  int ep = 1;   ///< ranks that share the experts, borrowed from dp_shard x cp (x tp, if etp is 1)
  int etp = 1;  ///< ranks that share each expert: 1 or tp
};

/// Coordinates of one rank.
using Coord = PerAxis<int>;

/// A mesh of `world` ranks: rank = (((pp * R + dp_replicate) * S + dp_shard) * C + cp) * T + tp.
class Layout {
 public:
  /// Fills the one -1 and checks that the product is `world`.
  /// Throws Error(usage) that names the degrees, the world size and what would be allowed.
  static Layout resolve(const Degrees& degrees, int world);

  int world() const { return world_; }
  IndexRange<Rank> ranks() const { return IndexRange<Rank>(world_); }
  int degree(Axis axis) const { return degrees_[axis]; }
  const PerAxis<int>& degrees() const { return degrees_; }
  Coord coord_of(Rank rank) const;
  Rank rank_of(const Coord& coord) const;
  /// Ranks that share every coordinate with `rank` except those of `axes`, in mesh order.
  std::vector<Rank> group_of(Rank rank, const std::vector<Axis>& axes) const;
  /// Of such a group: "dp_shard+cp", without axes of degree 1; empty for a single rank.
  std::string group_name(const std::vector<Axis>& axes) const;
  /// Data-parallel ranks that read different samples (dp_replicate x dp_shard), and this rank's
  /// number among them.
  int dp_degree() const { return degree(Axis::dp_replicate) * degree(Axis::dp_shard); }
  int dp_rank(Rank rank) const;
  /// The expert view of the same ranks: pp, dp_replicate, efsdp, ep (and tp, if each expert is cut
  /// over it), with efsdp * ep = dp_shard * cp * tp (without tp then); ep is fastest.
  int expert_degree() const { return ep_; }
  bool experts_cut_by_tp() const { return etp_ > 1; }
  /// Ranks that hold the other experts of `rank`'s copy, and those that share its experts'
  /// parameters, in mesh order.
  std::vector<Rank> expert_group_of(Rank rank) const;
  std::vector<Rank> expert_shard_group_of(Rank rank) const;
  /// "pp2.r1.s2.cp1.tp2"-like, for messages; coord form "pp0.r0.s1.cp0.tp0" names checkpoint
  /// shards.
  std::string to_string() const;
  std::string coord_name(Rank rank) const;
  bool operator==(const Layout&) const = default;

 private:
  std::vector<Rank> borrowed_from(Rank rank) const;
  PerAxis<int> degrees_{1, 1, 1, 1, 1};
  int world_ = 1;
  int ep_ = 1, etp_ = 1;
};

}  // namespace tessera::mesh
