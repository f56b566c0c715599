// SPDX-License-Identifier: Apache-2.0
#include "format/tensor_table.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tessera/base/box.hpp"
#include "tessera/base/json.hpp"

namespace tessera::checkpoint {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Takes the run of digits at the front of `text`, without leading zeros.
std::string_view take_number(std::string_view& text) {
  std::size_t end = 0;
  while (end < text.size() && is_digit(text[end])) ++end;
  std::string_view number = text.substr(0, end);
  text.remove_prefix(end);
  while (number.size() > 1 && number.front() == '0') number.remove_prefix(1);
  return number;
}

}  // namespace

bool NaturalOrder::operator()(std::string_view a, std::string_view b) const noexcept {
  const std::string_view whole_a = a, whole_b = b;
  while (!a.empty() && !b.empty()) {
    if (is_digit(a.front()) && is_digit(b.front())) {
      const std::string_view m = take_number(a), n = take_number(b);
      if (m.size() != n.size()) return m.size() < n.size();
      if (m != n) return m < n;
    } else {
      if (a.front() != b.front()) return a.front() < b.front();
      a.remove_prefix(1), b.remove_prefix(1);
    }
  }
  if (a.empty() != b.empty()) return a.empty();
  return whole_a < whole_b;
}

void TensorTable::add(const std::string& name, const Row& row) {
  const auto [at, is_new] = rows_.try_emplace(name, row);
  if (is_new) return;
  at->second.elements += row.elements;
  if (conflict_.empty() && (at->second.dtype != row.dtype || at->second.shape != row.shape))
    conflict_ = fmt::format("tensor {} is {} {} on one rank and {} {} on another", name,
                            name_of(at->second.dtype), to_string(at->second.shape),
                            name_of(row.dtype), to_string(row.shape));
}

void TensorTable::merge(const TensorTable& other) {
  for (const auto& [name, row] : other.rows_) add(name, row);
  if (conflict_.empty()) conflict_ = other.conflict_;
}

std::vector<TensorInfo> TensorTable::tensors() const {
  std::vector<TensorInfo> tensors;
  for (const auto& [name, row] : rows_) tensors.push_back({name, row.dtype, row.shape});
  return tensors;
}

std::string TensorTable::to_text() const {
  nlohmann::json json = nlohmann::json::array({conflict_});
  for (const auto& [name, row] : rows_)
    json.push_back({name, static_cast<int>(row.dtype), row.shape, row.elements});
  return json_text(json);
}

TensorTable TensorTable::from_text(const std::string& text) {
  const nlohmann::json json = parse_valid_json(text);
  TensorTable table;
  table.conflict_ = json.at(0).get<std::string>();
  for (std::size_t i = 1; i < json.size(); ++i)
    table.add(json[i].at(0).get<std::string>(),
              {static_cast<DType>(json[i].at(1).get<int>()), json[i].at(2).get<Shape>(),
               json[i].at(3).get<std::int64_t>()});
  return table;
}

std::string TensorTable::merge_texts(std::string a, const std::string& b) {
  TensorTable table = from_text(a);
  table.merge(from_text(b));
  return table.to_text();
}

}  // namespace tessera::checkpoint
