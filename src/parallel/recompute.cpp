// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/recompute.hpp"

#include <algorithm>
#include <numeric>

#include "tessera/base/error.hpp"
#include "tessera/kernels/torch_internal.hpp"

namespace tessera::parallel {
namespace {

using at::Tensor;

std::int64_t bytes_of(const ActivationBytes& unit, Recompute how) {
  if (how == Recompute::nothing) return unit.nothing;
  return how == Recompute::operations ? unit.operations : unit.unit;
}

bool shows(const model::Flow& flow, const Tensor& tensor) {
  return std::ranges::any_of(model::kSlotList, [&](model::Slot slot) {
    return flow[slot].defined() && flow[slot].is_alias_of(tensor);
  });
}

}  // namespace

std::vector<Recompute> recompute_within(std::span<const ActivationBytes> units, double budget) {
  const auto sum = [&](std::int64_t ActivationBytes::*bytes) {
    return std::accumulate(
        units.begin(), units.end(), std::int64_t{0},
        [bytes](std::int64_t total, const ActivationBytes& unit) { return total + unit.*bytes; });
  };
  const std::int64_t least = sum(&ActivationBytes::unit), most = sum(&ActivationBytes::nothing);
  const std::int64_t allowed =
      least + static_cast<std::int64_t>(budget * static_cast<double>(most - least));
  std::vector<Recompute> chosen(units.size(), Recompute::nothing);
  std::int64_t bytes = most;
  const auto change = [&](std::size_t i, Recompute to) {
    bytes += bytes_of(units[i], to) - bytes_of(units[i], chosen[i]);
    chosen[i] = to;
  };
  for (const Recompute more : {Recompute::operations, Recompute::unit})
    for (std::size_t i = 0; i < units.size() && bytes > allowed; ++i) change(i, more);
  for (std::size_t i = units.size(); i-- > 0;)  // a whole unit may have freed more than was needed
    if (chosen[i] == Recompute::operations &&
        bytes - units[i].operations + units[i].nothing <= allowed)
      change(i, Recompute::nothing);
  return chosen;
}

void Remakes::add(const Tensor& made, std::function<Tensor()> remake) {
  entries_.push_back({made.detach(), std::move(remake), 0});
}

void Remakes::drop(const model::Flow& in, const model::Flow& out) {
  for (Entry& entry : entries_) {
    const auto bytes = static_cast<std::int64_t>(entry.made.nbytes());
    TESSERA_EXPECT(entry.made.is_contiguous(), "a recomputed tensor is not dense");
    if (shows(in, entry.made) || shows(out, entry.made)) continue;
    kernels::release_storage(entry.made);
    entry.bytes = bytes;
  }
}

void Remakes::restore() {
  at::NoGradGuard no_grad;
  for (Entry& entry : entries_) {
    if (entry.bytes == 0) continue;
    kernels::move_storage(entry.remake().contiguous(), entry.made);
    entry.bytes = 0;
  }
}

std::int64_t Remakes::dropped_bytes() const {
  return std::accumulate(
      entries_.begin(), entries_.end(), std::int64_t{0},
      [](std::int64_t total, const Entry& entry) { return total + entry.bytes; });
}

}  // namespace tessera::parallel
