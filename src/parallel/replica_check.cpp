// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/replica_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace tessera::parallel {
namespace {

using at::Tensor;
using mesh::Axis;

/// words at a time, so that the odd numbers need little memory
constexpr std::int64_t kPiece = 1 << 20;
/// even: its multiples plus 1 are odd
constexpr auto kMultiplier = static_cast<std::int64_t>(0x9E3779B97F4A7C16U);

/// Words times odd numbers, summed modulo 2^64: one wrong word always changes it.
std::int64_t hash_of(const Tensor& flat) {
  at::NoGradGuard no_grad;
  const Tensor words = flat.view(at::kLong);
  Tensor sum = at::zeros({}, words.options());
  for (std::int64_t begin = 0; begin < words.numel(); begin += kPiece) {
    const std::int64_t count = std::min(kPiece, words.numel() - begin);
    const Tensor odd = at::arange(begin, begin + count, words.options()).mul_(kMultiplier).add_(1);
    sum.add_(words.narrow(0, begin, count).mul(odd).sum());
  }
  return sum.item<std::int64_t>();
}

/// The hash that more than half of the replicas have; nothing if none is.
std::optional<std::int64_t> majority(const std::vector<std::int64_t>& hashes) {
  for (const std::int64_t hash : hashes)
    if (2 * std::ranges::count(hashes, hash) > static_cast<std::ptrdiff_t>(hashes.size()))
      return hash;
  return std::nullopt;
}

}  // namespace

std::string find_replica_fault(Stages& stages, mesh::DeviceMesh& mesh) {
  comm::Communicator& replicas = mesh.along(Axis::dp_replicate).host();
  if (replicas.size() == 1) return {};
  const std::vector<ShardGroup*> groups = stages.groups();
  std::vector<std::int64_t> mine, all(groups.size() * static_cast<std::size_t>(replicas.size()));
  for (const ShardGroup* group : groups) mine.push_back(hash_of(group->flat_master()));
  const auto count = static_cast<std::int64_t>(mine.size());
  replicas
      .all_gather({mine.data(), count, DType::i64},
                  {all.data(), count * replicas.size(), DType::i64})
      .wait();
  std::string fault;
  for (std::size_t g = 0; g < groups.size() && fault.empty(); ++g) {
    std::vector<std::int64_t> hashes;
    for (std::size_t r = 0; r < static_cast<std::size_t>(replicas.size()); ++r)
      hashes.push_back(all[r * groups.size() + g]);
    if (std::ranges::count(hashes, mine[g]) == replicas.size()) continue;
    const auto right = majority(hashes);
    if (right == mine[g]) continue;  // another rank differs from this one and others
    fault =
        fmt::format("parameters of {} on rank {} differ from {}", groups[g]->name(), mesh.rank(),
                    right ? "those of its replicas"
                          : "those of another replica; it is not known which one is right");
  }
  std::string text;
  for (const std::string& one : comm::all_gather_strings(mesh.control(), fault))
    if (!one.empty()) text += (text.empty() ? "" : "; ") + one;
  return text;
}

}  // namespace tessera::parallel
