// SPDX-License-Identifier: Apache-2.0
#include "tessera/model/cell.hpp"

namespace tessera::model {

void ExpertLoads::add(int mixture, const at::Tensor& tokens) {
  at::NoGradGuard no_grad;
  at::Tensor& count = counts[static_cast<std::size_t>(mixture)];
  if (count.defined()) count += tokens;
}

const TokenExchange& no_exchange() {
  static const TokenExchange none;
  return none;
}

Angles Angles::of(std::span<const Range> positions) const {
  std::vector<at::Tensor> cosines, sines;
  for (const Range& range : positions) {
    cosines.push_back(cos.narrow(0, range.begin, range.size));
    sines.push_back(sin.narrow(0, range.begin, range.size));
  }
  return {at::cat(cosines), at::cat(sines)};
}

Angles CellContext::angles_of(std::int64_t count) const {
  return {angles->cos.narrow(0, position, count), angles->sin.narrow(0, position, count)};
}

}  // namespace tessera::model
