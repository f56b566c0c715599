#include "tessera/model/model.hpp"

#include <array>

namespace tessera::model {

std::string_view name_of(Slot slot) noexcept {
  constexpr std::array<std::string_view, kSlots> names{"tokens", "x", "h", "q", "k", "v", "logits"};
  return names[static_cast<std::size_t>(slot)];
}

std::int64_t Model::parameter_count() const {
  std::int64_t count = 0;
  for (const ParamSpec& spec : params) count += element_count(spec.global_shape);
  return count;
}

std::int64_t Model::embedding_parameter_count() const {
  return dimensions.tied ? 0 : dimensions.vocab * dimensions.dim;
}

double forward_flops(const Model& model, const Cell& cell, std::int64_t seq) {
  std::int64_t weights = 0;
  for (const int param : cell.params)
    weights += element_count(model.params[static_cast<std::size_t>(param)].global_shape);
  return 2 * cell.activity * static_cast<double>(weights) +
         static_cast<double>(cell.attention_width) * static_cast<double>(seq);
}

}  // namespace tessera::model
