// SPDX-License-Identifier: Apache-2.0
// Names of what travels from cell to cell; component `model` holds a tensor in each slot.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tessera::model {

/// Shapes, with T = rows x positions of a microbatch (row-major: sequence by sequence), T' = T / tp
/// when the slot is cut over tensor-parallel ranks, H = this rank's heads:
///   tokens [T] int64 · x [T', dim] residual stream · h [T' or T, ...] working value ·
///   q [B, S, H, hd] · k, v [B, S, Hkv, hd] · logits [T, vocab / tp].
/// In a mixture of experts, with K experts a token: m [T', dim] what goes to the experts, between
///   dispatch and combine their rows · scores [T', K] · route [T', K] int64 chosen experts, between
///   dispatch and combine the place of each choice's row · sent [experts] int64 choices of each
///   expert, after dispatch rows for it · received [ranks, experts here] int64 rows of each rank ·
///   order [rows] int64 in which rows of several ranks lie expert by expert · balance: see
///   balance_loss.hpp. Where a token goes once to a rank, between dispatch and combine: scores and
///   route [R, K] are those of the tokens that arrived · received [1, experts here] · sent [2,
///   ranks] rows for and from each rank, undefined with free rows · home [T', ranks] int64 where
///   the sums of the ranks are when they come back, or -1.
enum class Slot : std::uint8_t {
  tokens,
  x,
  h,
  q,
  k,
  v,
  logits,
  m,
  scores,
  route,
  sent,
  received,
  order,
  home,
  balance
};
inline constexpr std::size_t kSlots = static_cast<std::size_t>(Slot::balance) + 1;
inline constexpr std::array<Slot, kSlots> kSlotList = [] {
  std::array<Slot, kSlots> all{};
  for (std::size_t i = 0; i < kSlots; ++i) all[i] = static_cast<Slot>(i);
  return all;
}();
std::string_view name_of(Slot slot) noexcept;

}  // namespace tessera::model
