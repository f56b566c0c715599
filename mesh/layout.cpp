// SPDX-License-Identifier: Apache-2.0
#include "tessera/mesh/layout.hpp"

#include <algorithm>
#include <numeric>

#include "tessera/base/error.hpp"

namespace tessera::mesh {
namespace {

constexpr std::array<std::string_view, 5> kNames{"pp", "dp_replicate", "dp_shard", "cp", "tp"};
constexpr std::array<std::string_view, 5> kShort{"pp", "r", "s", "cp", "tp"};

using Five = std::array<int, 5>;

/// "pp 2 x tp 3"; the axes of degree 1 say nothing. `skip` leaves one out.
std::string product_text(const Five& degrees, std::size_t skip = 5) {
  std::string text;
  for (std::size_t i = 0; i < 5; ++i) {
    if (i == skip || degrees[i] == 1) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : " x ", kNames[i], degrees[i]);
  }
  return text;
}

std::int64_t product(const Five& degrees, std::size_t skip = 5) {
  std::int64_t result = 1;
  for (std::size_t i = 0; i < 5; ++i)
    if (i != skip) result *= degrees[i];
  return result;
}

/// "pp 2 x tp 3 = 6"
std::string equation(const Five& degrees) {
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

/// What the innermost of the configured axes may be when the others stay: "with pp 2, tp may be 1,
/// 2 or 4".
std::string advice(const Five& degrees, int world, bool exactly) {
  for (std::size_t i = 5; i-- > 0;) {
    if (degrees[i] == 1) continue;
    const std::int64_t others = product(degrees, i);
    if (world % others != 0) continue;
    const int rest = static_cast<int>(world / others);
    const std::string kept = product_text(degrees, i);
    return fmt::format("{}{}{} may be {}", kept.empty() ? "" : "with ", kept,
                       kept.empty() ? std::string(kNames[i]) : fmt::format(", {}", kNames[i]),
                       exactly ? std::to_string(rest) : alternatives(divisors_of(rest)));
  }
  return fmt::format("the degrees must multiply to {}: set one of them to -1 (the remaining ranks)",
                     world);
}

void check_each(const Five& degrees) {
  for (std::size_t i = 0; i < 5; ++i)
    require(degrees[i] >= 1 || degrees[i] == -1, ExitCode::usage,
            "{} {} is not a degree; use 1 or more, or -1 for the remaining ranks", kNames[i],
            degrees[i]);
  const auto open = std::count(degrees.begin(), degrees.end(), -1);
  if (open <= 1) return;
  std::string names;
  for (std::size_t i = 0; i < 5; ++i)
    if (degrees[i] == -1) names += fmt::format("{}{}", names.empty() ? "" : " and ", kNames[i]);
  fail(ExitCode::usage, "{} are both -1; only one axis can be -1 (the remaining ranks)", names);
}

/// Multiplies with the degree 1 in place of the open one; fails where the product overflows any
/// world.
std::int64_t checked_product(Five degrees) {
  std::int64_t result = 1;
  for (int& degree : degrees) {
    result *= degree;
    require(result <= (std::int64_t{1} << 31) - 1, ExitCode::usage,
            "{} ranks are more than supported; reduce a degree", product_text(degrees));
  }
  return result;
}

/// The expert degrees fit the ranks that they borrow.
void check_experts(const Five& degrees, int ep, int etp) {
  const int tp = degrees[4];
  require(etp == 1 || etp == tp, ExitCode::usage,
          "expert_tensor_parallel_degree {} is neither 1 nor tensor_parallel_degree {}; choose one "
          "of the two",
          etp, tp);
  const int ranks = degrees[2] * degrees[3] * (etp > 1 ? 1 : tp);
  require(ep >= 1 && ranks % ep == 0, ExitCode::usage,
          "expert_parallel_degree {} does not divide the {} that it regroups (dp_shard {} x cp "
          "{}{}); it may be {}",
          ep, ranks_text(ranks), degrees[2], degrees[3], etp > 1 ? "" : fmt::format(" x tp {}", tp),
          alternatives(divisors_of(ranks)));
}

}  // namespace

std::string_view name_of(Axis axis) noexcept { return kNames[static_cast<std::size_t>(axis)]; }

Layout Layout::resolve(const Degrees& configured, int world) {
  require(world >= 1, ExitCode::usage, "a mesh of {} ranks cannot be made; start at least one",
          world);
  Five degrees{configured.pp, configured.dp_replicate, configured.dp_shard, configured.cp,
               configured.tp};
  check_each(degrees);
  const auto open = std::find(degrees.begin(), degrees.end(), -1);
  const bool filled = open != degrees.end();
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

Coord Layout::coord_of(int rank) const {
  TESSERA_EXPECT(rank >= 0 && rank < world_, "rank {} of a mesh of {}", rank, world_);
  Coord coord{};
  for (std::size_t i = 5; i-- > 0; rank /= degrees_[i]) coord[i] = rank % degrees_[i];
  return coord;
}

int Layout::rank_of(const Coord& coord) const {
  int rank = 0;
  for (std::size_t i = 0; i < 5; ++i) {
    TESSERA_EXPECT(coord[i] >= 0 && coord[i] < degrees_[i], "coordinate {} of {} on axis {}",
                   coord[i], degrees_[i], kNames[i]);
    rank = rank * degrees_[i] + coord[i];
  }
  return rank;
}

std::vector<int> Layout::group_of(int rank, const std::vector<Axis>& axes) const {
  Coord first = coord_of(rank);
  std::vector<int> ranks{0};
  for (Axis axis : kAxes) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) continue;
    const auto i = static_cast<std::size_t>(axis);
    first[i] = 0;
    const int stride = std::accumulate(degrees_.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                       degrees_.end(), 1, std::multiplies<>());
    std::vector<int> wider;
    for (int offset : ranks)
      for (int c = 0; c < degrees_[i]; ++c) wider.push_back(offset + c * stride);
    ranks = std::move(wider);
  }
  const int base = rank_of(first);
  for (int& member : ranks) member += base;
  return ranks;
}

std::vector<int> Layout::borrowed_from(int rank) const {
  using enum Axis;
  return group_of(rank,
                  experts_cut_by_tp() ? std::vector{dp_shard, cp} : std::vector{dp_shard, cp, tp});
}

std::vector<int> Layout::expert_group_of(int rank) const {
  const std::vector<int> all = borrowed_from(rank);
  const auto first = (std::ranges::find(all, rank) - all.begin()) / ep_ * ep_;
  return {all.begin() + first, all.begin() + first + ep_};
}

std::vector<int> Layout::expert_shard_group_of(int rank) const {
  const std::vector<int> all = borrowed_from(rank);
  std::vector<int> group;
  for (auto i = (std::ranges::find(all, rank) - all.begin()) % ep_; i < std::ssize(all); i += ep_)
    group.push_back(all[static_cast<std::size_t>(i)]);
  return group;
}

int Layout::dp_rank(int rank) const {
  const Coord coord = coord_of(rank);
  return coord[static_cast<std::size_t>(Axis::dp_replicate)] * degree(Axis::dp_shard) +
         coord[static_cast<std::size_t>(Axis::dp_shard)];
}

std::string Layout::to_string() const {
  std::string text;
  for (std::size_t i = 0; i < 5; ++i)
    text += fmt::format("{}{}{}", i ? "." : "", kShort[i], degrees_[i]);
  if (ep_ > 1) text += fmt::format(".ep{}", ep_);
  if (etp_ > 1) text += fmt::format(".etp{}", etp_);
  return text;
}

std::string Layout::coord_name(int rank) const {
  const Coord coord = coord_of(rank);
  std::string text;
  for (std::size_t i = 0; i < 5; ++i)
    text += fmt::format("{}{}{}", i ? "." : "", kShort[i], coord[i]);
  return text;
}

}  // namespace tessera::mesh
