// SPDX-License-Identifier: Apache-2.0
#include "tessera/model/cell.hpp"

#include "tessera/base/error.hpp"
#include "tessera/model/routing.hpp"

namespace tessera::model {

void ExpertLoads::add(int mixture, const at::Tensor& chosen) {
  at::NoGradGuard no_grad;
  at::Tensor& count = counts[static_cast<std::size_t>(mixture)];
  if (count.defined()) count += count_choices(chosen, count.size(0));
}

const TokenExchange& no_exchange() {
  static const TokenExchange none;
  return none;
}

at::Tensor CellContext::rows_of(const at::Tensor& table, std::int64_t count) const {
  if (positions.empty()) return table.narrow(0, position, count);
  std::vector<at::Tensor> rows;
  std::int64_t held = 0;
  for (const Range& range : positions) {
    rows.push_back(table.narrow(0, range.begin, range.size));
    held += range.size;
  }
  TESSERA_EXPECT(held == count, "{} positions for {} tokens of a sequence", held, count);
  return rows.size() == 1 ? rows[0] : at::cat(rows);
}

}  // namespace tessera::model
