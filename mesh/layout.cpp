// SPDX-License-Identifier: Apache-2.0
#include "tessera/mesh/layout.hpp"

#include <algorithm>

#include "tessera/base/error.hpp"

namespace tessera::mesh {
namespace {

using AxisDegrees = PerAxis<int>;

constexpr PerAxis<std::string_view> kNames{"pp", "dp_replicate", "dp_shard", "cp", "tp"};
/// Of section parallelism.
constexpr PerAxis<std::string_view> kKeys{
    "pipeline_parallel_degree", "data_parallel_replicate_degree", "data_parallel_shard_degree",
    "context_parallel_degree", "tensor_parallel_degree"};
constexpr PerAxis<std::string_view> kShort{"pp", "r", "s", "cp", "tp"};

/// "pp 2 x tp 3"; the axes of degree 1 say nothing.
std::string product_text(const AxisDegrees& degrees) {
  std::string text;
  for (const Axis axis : kAxes)
    if (degrees[axis] != 1)
      text += fmt::format("{}{} {}", text.empty() ? "" : " x ", kNames[axis], degrees[axis]);
  return text;
}

/// "pp2.r1.s2.cp1.tp2"
std::string short_text(const PerAxis<int>& numbers) {
  std::string text;
  for (const Axis axis : kAxes)
    text += fmt::format("{}{}{}", text.empty() ? "" : ".", kShort[axis], numbers[axis]);
  return text;
}

std::int64_t product(const AxisDegrees& degrees) {
  std::int64_t result = 1;
  for (const int degree : degrees.values) result *= degree;
  return result;
}

AxisDegrees without(AxisDegrees degrees, Axis axis) {
  degrees[axis] = 1;
  return degrees;
}

/// "pp 2 x tp 3 = 6"
std::string equation(const AxisDegrees& degrees) {
  const std::string text = product_text(degrees);
  if (text.empty()) return "the product of all degrees, 1,";
  return text.find(" x ") == std::string::npos ? text
                                               : fmt::format("{} = {}", text, product(degrees));
}

std::string ranks_text(int n) { return n == 1 ? "1 rank" : fmt::format("{} ranks", n); }

/// "1, 2 or 4"
std::string alternatives(const std::vector<int>& values) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 == values.size() ? " or " : ", ", values[i]);
  return text;
}

std::vector<int> divisors_of(int n) {
  std::vector<int> divisors;
  for (int d = 1; d <= n / d; ++d) {
    if (n % d != 0) continue;
    divisors.push_back(d);
    if (d != n / d) divisors.push_back(n / d);
  }
  std::sort(divisors.begin(), divisors.end());
  return divisors;
}

/// What the innermost of the configured axes may be when the others stay: "with pp 2, set
/// tensor_parallel_degree to 1, 2 or 4".
std::string advice(const AxisDegrees& degrees, int world, bool exactly) {
  for (auto axis = kAxes.rbegin(); axis != kAxes.rend(); ++axis) {
    if (degrees[*axis] == 1) continue;
    const AxisDegrees others = without(degrees, *axis);
    if (world % product(others) != 0) continue;
    const int rest = static_cast<int>(world / product(others));
    const std::string kept = product_text(others);
    return fmt::format("{}{}{}set {} to {}", kept.empty() ? "" : "with ", kept,
                       kept.empty() ? "" : ", ", kKeys[*axis],
                       exactly ? std::to_string(rest) : alternatives(divisors_of(rest)));
  }
  return fmt::format("the degrees must multiply to {}: set one of them to -1 (the remaining ranks)",
                     world);
}

void check_each(const AxisDegrees& degrees) {
  for (const Axis axis : kAxes)
    require(degrees[axis] >= 1 || degrees[axis] == -1, ExitCode::usage,
            "{} {} is not a degree; use 1 or more, or -1 for the remaining ranks", kNames[axis],
            degrees[axis]);
  if (std::ranges::count(degrees.values, -1) <= 1) return;
  std::string names;
  for (const Axis axis : kAxes)
    if (degrees[axis] == -1)
      names += fmt::format("{}{}", names.empty() ? "" : " and ", kNames[axis]);
  fail(ExitCode::usage, "{} are both -1; only one axis can be -1 (the remaining ranks)", names);
}

/// Multiplies with the degree 1 in place of the open one; fails where the product overflows any
/// world.
std::int64_t checked_product(const AxisDegrees& degrees) {
  std::int64_t result = 1;
  for (const int degree : degrees.values) {
    result *= degree;
    require(result <= (std::int64_t{1} << 31) - 1, ExitCode::usage,
            "{} ranks are more than supported; reduce a degree", product_text(degrees));
  }
  return result;
}

/// The expert degrees fit the ranks that they borrow.
void check_experts(const AxisDegrees& degrees, int ep, int etp) {
  const int shards = degrees[Axis::dp_shard], cp = degrees[Axis::cp], tp = degrees[Axis::tp];
  require(etp == 1 || etp == tp, ExitCode::usage,
          "expert_tensor_parallel_degree {} is neither 1 nor tensor_parallel_degree {}; choose one "
          "of the two",
          etp, tp);
  const int ranks = shards * cp * (etp > 1 ? 1 : tp);
  require(ep >= 1 && ranks % ep == 0, ExitCode::usage,
          "expert_parallel_degree {} does not divide the {} that it regroups (dp_shard {} x cp "
          "{}{}); it may be {}",
          ep, ranks_text(ranks), shards, cp, etp > 1 ? "" : fmt::format(" x tp {}", tp),
          alternatives(divisors_of(ranks)));
}

}  // namespace

std::string_view name_of(Axis axis) noexcept { return kNames[axis]; }

std::string neighbours_name(int ranks, const std::string& of) {
  return fmt::format("{} neighbours of {}", ranks, of);
}

Layout Layout::resolve(const Degrees& configured, int world) {
  require(world >= 1, ExitCode::usage, "a mesh of {} ranks cannot be made; start at least one",
          world);
  AxisDegrees degrees{configured.pp, configured.dp_replicate, configured.dp_shard, configured.cp,
                      configured.tp};
  check_each(degrees);
  const auto open = std::ranges::find(degrees.values, -1);
  const bool filled = open != degrees.values.end();
  if (filled) *open = 1;
  const std::int64_t total = checked_product(degrees);
  require(filled ? world % total == 0 : total == world, ExitCode::usage, "{} {} {}; {}",
          equation(degrees), filled ? "does not divide" : "does not make", ranks_text(world),
          advice(degrees, world, !filled));
  if (filled) *open = static_cast<int>(world / total);
  check_experts(degrees, configured.ep, configured.etp);
  Layout layout;
  layout.ep_ = configured.ep;
  layout.etp_ = configured.etp;
  layout.degrees_ = degrees;
  layout.world_ = world;
  return layout;
}

Coord Layout::coord_of(Rank rank) const {
  TESSERA_EXPECT(rank.value() >= 0 && rank.value() < world_, "rank {} of a mesh of {}", rank,
                 world_);
  Coord coord;
  int rest = rank.value();
  for (auto axis = kAxes.rbegin(); axis != kAxes.rend(); ++axis) {
    coord[*axis] = rest % degrees_[*axis];
    rest /= degrees_[*axis];
  }
  return coord;
}

Rank Layout::rank_of(const Coord& coord) const {
  int rank = 0;
  for (const Axis axis : kAxes) {
    TESSERA_EXPECT(coord[axis] >= 0 && coord[axis] < degrees_[axis],
                   "coordinate {} of {} on axis {}", coord[axis], degrees_[axis], kNames[axis]);
    rank = rank * degrees_[axis] + coord[axis];
  }
  return Rank(rank);
}

std::string Layout::group_name(const std::vector<Axis>& axes) const {
  std::string name;
  for (const Axis axis : axes)
    if (degree(axis) > 1) name += fmt::format("{}{}", name.empty() ? "" : "+", mesh::name_of(axis));
  return name;
}

std::vector<Rank> Layout::group_of(Rank rank, const std::vector<Axis>& axes) const {
  Coord first = coord_of(rank);
  for (const Axis axis : axes) first[axis] = 0;
  std::vector<Rank> ranks{rank_of(first)};
  int stride = world_;
  for (const Axis axis : kAxes) {
    stride /= degrees_[axis];
    if (std::ranges::find(axes, axis) == axes.end()) continue;
    std::vector<Rank> wider;
    for (const Rank member : ranks)
      for (int c = 0; c < degrees_[axis]; ++c) wider.push_back(member + c * stride);
    ranks = std::move(wider);
  }
  return ranks;
}

std::vector<Rank> Layout::borrowed_from(Rank rank) const {
  using enum Axis;
  return group_of(rank,
                  experts_cut_by_tp() ? std::vector{dp_shard, cp} : std::vector{dp_shard, cp, tp});
}

std::vector<Rank> Layout::expert_group_of(Rank rank) const {
  const std::vector<Rank> all = borrowed_from(rank);
  const auto first = (std::ranges::find(all, rank) - all.begin()) / ep_ * ep_;
  return {all.begin() + first, all.begin() + first + ep_};
}

std::vector<Rank> Layout::expert_shard_group_of(Rank rank) const {
  const std::vector<Rank> all = borrowed_from(rank);
  std::vector<Rank> group;
  for (auto i = (std::ranges::find(all, rank) - all.begin()) % ep_; i < std::ssize(all); i += ep_)
    group.push_back(all[static_cast<std::size_t>(i)]);
  return group;
}

int Layout::dp_rank(Rank rank) const {
  const Coord coord = coord_of(rank);
  return coord[Axis::dp_replicate] * degree(Axis::dp_shard) + coord[Axis::dp_shard];
}

std::string Layout::to_string() const {
  std::string text = short_text(degrees_);
  if (ep_ > 1) text += fmt::format(".ep{}", ep_);
  if (etp_ > 1) text += fmt::format(".etp{}", etp_);
  return text;
}

std::string Layout::coord_name(Rank rank) const { return short_text(coord_of(rank)); }

}  // namespace tessera::mesh
