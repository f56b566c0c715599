// SPDX-License-Identifier: Apache-2.0
#include "tessera/model_spec/model_spec.hpp"

#include <array>
#include <cmath>

namespace tessera::model {

std::string_view name_of(Slot slot) noexcept {
  constexpr std::array<std::string_view, kSlots> names{
      "tokens", "x",     "h",    "q",        "k",     "v",    "logits", "m",
      "scores", "route", "sent", "received", "order", "home", "balance"};
  static_assert(!names.back().empty(), "each slot has a name");
  return names[static_cast<std::size_t>(slot)];
}

std::int64_t ModelSpec::parameter_count() const {
  std::int64_t count = 0;
  for (const ParamSpec& spec : params) count += element_count(spec.global_shape);
  return count;
}

std::int64_t ModelSpec::active_parameter_count() const {
  double count = static_cast<double>(parameter_count());
  for (const CellSpec& cell : cells)
    for (const int param : cell.params)
      if (cell.activity > 0)  // a lookup's table counts
        count -= (1 - cell.activity) * static_cast<double>(element_count(
                                           params[static_cast<std::size_t>(param)].global_shape));
  return std::llround(count);
}

std::int64_t ModelSpec::embedding_parameter_count() const {
  return dimensions.tied ? 0 : dimensions.vocab * dimensions.dim;
}

std::vector<int> ModelSpec::mixtures_of(Range range) const {
  std::vector<int> found;
  for (std::int64_t i = range.begin; i < range.end(); ++i)
    if (const int mixture = cells[static_cast<std::size_t>(i)].mixture; mixture >= 0)
      found.push_back(mixture);
  return found;
}

std::int64_t ModelSpec::experts_of(Range range) const {
  std::int64_t experts = 0;
  for (const int mixture : mixtures_of(range))
    experts += mixtures[static_cast<std::size_t>(mixture)].experts;
  return experts;
}

double forward_flops(const ModelSpec& model, const CellSpec& cell, std::int64_t seq) {
  std::int64_t weights = 0;
  for (const int param : cell.params)
    weights += element_count(model.params[static_cast<std::size_t>(param)].global_shape);
  return 2 * cell.activity * static_cast<double>(weights) +
         static_cast<double>(cell.attention_width) * static_cast<double>(seq);
}

}  // namespace tessera::model
