// SPDX-License-Identifier: Apache-2.0
#include "tessera/metrics/record_columns.hpp"

#include <algorithm>
#include <limits>

#include "columns.hpp"

namespace tessera::metrics {

std::vector<std::string> column_names() {
  std::vector<std::string> names;
  for (const Column& column : kColumns)
    if (column.whole != &StepRecord::step) names.emplace_back(column.name);
  return names;
}

double value_in(const StepRecord& record, std::string_view column) {
  if (const auto own = std::ranges::find(kColumns, column, &Column::name); own != kColumns.end())
    return own->real ? record.*own->real : static_cast<double>(record.*own->whole);
  for (const auto& [name, value] : record.extra)
    if (name == column) return value;
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace tessera::metrics
