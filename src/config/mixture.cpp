// SPDX-License-Identifier: Apache-2.0
#include "tessera/config/mixture.hpp"

#include <charconv>
#include <cmath>
#include <filesystem>

namespace tessera::config {
namespace {

/// "books" of data/books.tokens, data/books/ and data/books/*.tokens.
std::string name_of(const std::filesystem::path& path) {
  const bool pattern = path.filename().string().find_first_of("*?[") != std::string::npos;
  const bool above = !path.has_filename() || (pattern && path.has_parent_path());
  return (above ? path.parent_path() : path).stem().string();
}

}  // namespace

std::optional<MixtureEntry> mixture_entry(const Strings& row) {
  if (row.size() < 2 || row[0].empty()) return std::nullopt;
  MixtureEntry entry{row[0], 0, row.size() > 2 ? row[2] : ""};
  const std::string& number = row[1];
  const auto [end, fault] =
      std::from_chars(number.data(), number.data() + number.size(), entry.weight);
  const bool whole = fault == std::errc() && end == number.data() + number.size();
  if (!whole || !std::isfinite(entry.weight) || entry.weight <= 0) return std::nullopt;
  if (entry.name.empty()) entry.name = name_of(entry.path);
  return entry;
}

}  // namespace tessera::config
