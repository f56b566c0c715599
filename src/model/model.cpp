#include "tessera/model/model.hpp"

#include <array>

#include "tessera/base/error.hpp"

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

int Model::cell_index(const std::string& name) const {
  for (std::size_t i = 0; i < cells.size(); ++i)
    if (cells[i].name == name || cells[i].name.starts_with(name + ".")) return static_cast<int>(i);
  fail(ExitCode::usage, "\"{}\" names no cell or block of {}; the first are {}, {}, {}", name, this->name, cells[0].name,
       cells[1].name, cells[2].name);
}

}  // namespace tessera::model
