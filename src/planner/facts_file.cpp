// SPDX-License-Identifier: Apache-2.0
#include "facts_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "tessera/base/error.hpp"
#include "tessera/base/shipped_files.hpp"
#include "tessera/base/suggest.hpp"

namespace tessera::planner {
namespace {

namespace fs = std::filesystem;
using config::TomlEntry;

double number_in(const FactsFile& facts, const TomlEntry& entry, const config::TomlNode& node) {
  double number = 0;
  if (const auto* whole = std::get_if<std::int64_t>(&node.value))
    number = static_cast<double>(*whole);
  else if (const auto* real = std::get_if<double>(&node.value))
    number = *real;
  else
    facts.refuse(entry, "must be a number");
  if (number < 0) facts.refuse(entry, "must not be negative");
  if (!std::isfinite(number)) facts.refuse(entry, "must be finite");
  return number;
}

}  // namespace

std::vector<std::string> names_in(const char* folder) {
  std::vector<std::string> names;
  std::error_code problem;
  for (const auto& entry : fs::directory_iterator(share_folder() / folder, problem))
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  return names;
}

std::string file_of(const char* kind, const char* folder, const std::string& name) {
  if (name.ends_with(".toml")) return name;
  const std::vector<std::string> names = names_in(folder);
  require(!names.empty(), ExitCode::usage,
          "{} holds no {} files; set TESSERA_SHARE to Tessera's folder share/tessera, or install "
          "Tessera again",
          (share_folder() / folder).string(), kind);
  require(std::ranges::binary_search(names, name), ExitCode::usage,
          "{} '{}' is not known{}; take one of {}, or a file that ends in .toml", kind,
          name.substr(0, 80), did_you_mean(name, names), fmt::join(names, ", "));
  return (share_folder() / folder / (name + ".toml")).string();
}

FactsFile::FactsFile(std::string file)
    : file_(std::move(file)), entries_(config::read_toml_tree(file_)) {}

const config::TomlTable& FactsFile::table(const TomlEntry& entry) const {
  if (const auto* table = std::get_if<config::TomlTable>(&entry.node.value)) return *table;
  refuse(entry, "must be a table");
}

double FactsFile::number(const TomlEntry& entry) const {
  return number_in(*this, entry, entry.node);
}

int FactsFile::count(const TomlEntry& entry) const {
  constexpr double kMost = 1 << 20;
  const double value = number(entry);
  if (value < 1 || value > kMost || value != std::floor(value))
    refuse(entry, fmt::format("must be a whole number from 1 to {:.0f}", kMost));
  return static_cast<int>(value);
}

bool FactsFile::truth(const TomlEntry& entry) const {
  if (const auto* value = std::get_if<bool>(&entry.node.value)) return *value;
  refuse(entry, "must be true or false");
}

const std::string& FactsFile::word(const TomlEntry& entry) const {
  if (const auto* value = std::get_if<std::string>(&entry.node.value)) return *value;
  refuse(entry, "must be a string in quotes");
}

std::pair<double, double> FactsFile::pair(const TomlEntry& entry) const {
  const auto* list = std::get_if<config::TomlList>(&entry.node.value);
  if (!list || list->size() != 2) refuse(entry, "must be a list of two numbers");
  return {number_in(*this, entry, list->front()), number_in(*this, entry, list->back())};
}

void FactsFile::unknown(const TomlEntry& entry, const std::vector<std::string>& known) const {
  refuse(entry, fmt::format("is not known{}; there are {}", did_you_mean(entry.key, known),
                            fmt::join(known, ", ")));
}

void FactsFile::refuse(const TomlEntry& entry, const std::string& why) const {
  fail(ExitCode::usage, "{}:{}:{}: {} {}", file_, entry.line, entry.column, entry.key, why);
}

}  // namespace tessera::planner
