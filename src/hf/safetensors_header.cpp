// SPDX-License-Identifier: Apache-2.0
#include "safetensors_header.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <tuple>

#include "tessera/base/box.hpp"
#include "tessera/base/json.hpp"
#include "tessera/base/json_reader.hpp"

namespace tessera::hf {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kHeaderLimitBytes = 100'000'000;  // the reference implementation's limit

struct Spelling {
  const char* name;
  DType dtype;
};
// BOOL comes last: u8 is written as U8.
constexpr std::array<Spelling, 12> kSpellings{{{"F64", DType::f64},
                                               {"F32", DType::f32},
                                               {"F16", DType::f16},
                                               {"BF16", DType::bf16},
                                               {"I64", DType::i64},
                                               {"I32", DType::i32},
                                               {"I16", DType::i16},
                                               {"I8", DType::i8},
                                               {"U8", DType::u8},
                                               {"F8_E4M3", DType::f8e4m3},
                                               {"F8_E5M2", DType::f8e5m2},
                                               {"BOOL", DType::u8}}};

DType dtype_of(const JsonNode& node) {
  for (const Spelling& known : kSpellings)
    if (node.string() == known.name) return known.dtype;
  node.refuse(fmt::format("the unknown type \"{}\"", node.string()));
}

const char* spelling_of(DType dtype) {
  return std::find_if(kSpellings.begin(), kSpellings.end(),
                      [&](const Spelling& s) { return s.dtype == dtype; })
      ->name;
}

PlacedEntry parse_entry(const std::string& name, const JsonNode& node) {
  PlacedEntry placed;
  placed.entry = {name, dtype_of(node["dtype"]), shape_in(node["shape"])};
  const JsonNode offsets = node["data_offsets"];
  if (offsets.array().size() != 2) offsets.refuse("not a pair of offsets");
  placed.begin = offsets[0].count();
  const std::int64_t end = offsets[1].count();
  const auto bytes = checked_bytes(placed.entry.shape, placed.entry.dtype);
  if (!bytes || end < placed.begin || end - placed.begin != *bytes)
    node.refuse(fmt::format("the shape {} and the offsets {}..{} do not agree",
                            to_string(placed.entry.shape), placed.begin, end));
  placed.bytes = *bytes;
  return placed;
}

std::map<std::string, std::string> parse_metadata(const JsonNode& node) {
  std::map<std::string, std::string> metadata;
  for (const auto& [key, text] : node.object().items()) metadata[key] = node[key].string();
  return metadata;
}

/// The tensors must follow each other without overlap or hole and fill the file: nothing may hide
/// in it.
void check_layout(std::vector<PlacedEntry>& entries, std::int64_t data_bytes,
                  const TextSource& source) {
  std::sort(entries.begin(), entries.end(), [](const PlacedEntry& a, const PlacedEntry& b) {
    return std::tie(a.begin, a.bytes, a.entry.name) < std::tie(b.begin, b.bytes, b.entry.name);
  });
  std::int64_t next = 0;
  for (const PlacedEntry& placed : entries) {
    if (placed.begin > data_bytes || placed.bytes > data_bytes - placed.begin)
      source.damaged(
          fmt::format("tensor \"{}\" ends at byte {} of {} data bytes; the file is truncated or "
                      "its header is wrong",
                      placed.entry.name, placed.begin + placed.bytes, data_bytes));
    if (placed.begin != next)
      source.damaged(fmt::format("tensor \"{}\" begins at data byte {} where {} was expected: {}",
                                 placed.entry.name, placed.begin, next,
                                 placed.begin < next ? "tensors overlap" : "there is a gap"));
    next = placed.begin + placed.bytes;
  }
  if (next != data_bytes)
    source.damaged(fmt::format("{} bytes follow the last tensor", data_bytes - next));
}

std::string read_header_text(const File& file, const TextSource& source) {
  const std::int64_t file_bytes = file.size();
  if (file_bytes < 8)
    source.damaged(fmt::format("{} bytes are too few for a safetensors file", file_bytes));
  std::uint64_t header_bytes = 0;
  file.read(&header_bytes, 8, 0);
  if (header_bytes > static_cast<std::uint64_t>(std::min(kHeaderLimitBytes, file_bytes - 8)))
    source.damaged(fmt::format("a header of {} bytes in a file of {}; is this a safetensors file?",
                               header_bytes, file_bytes));
  std::string text(header_bytes, '\0');
  file.read(text.data(), text.size(), 8);
  return text;
}

}  // namespace

SafetensorsHeader read_safetensors_header(const File& file) {
  const TextSource source{file.path(), ExitCode::data};
  const std::string text = read_header_text(file, source);
  const Json json = parse_json(text, source);
  const JsonNode root(json, source);
  SafetensorsHeader header;
  for (const auto& [name, value] : root.object().items()) {
    if (name == "__metadata__")
      header.metadata = parse_metadata(root[name]);
    else
      header.entries.push_back(parse_entry(name, root[name]));
  }
  const std::int64_t data_begin = 8 + static_cast<std::int64_t>(text.size());
  check_layout(header.entries, file.size() - data_begin, source);
  for (PlacedEntry& placed : header.entries) placed.begin += data_begin;
  return header;
}

std::string place_safetensors(std::vector<PlacedEntry>& entries,
                              const std::map<std::string, std::string>& metadata) {
  std::sort(entries.begin(), entries.end(), [](const PlacedEntry& a, const PlacedEntry& b) {
    const auto wide = size_of(a.entry.dtype), other = size_of(b.entry.dtype);
    return wide != other ? wide > other : a.entry.name < b.entry.name;
  });
  std::string text = "{";
  const auto add = [&](const std::string& key, const nlohmann::ordered_json& value) {
    text +=
        fmt::format("{}{}:{}", text.size() == 1 ? "" : ",", json_text(Json(key)), json_text(value));
  };
  if (!metadata.empty()) add("__metadata__", metadata);
  std::int64_t next = 0;
  for (PlacedEntry& placed : entries) {
    placed.begin = next;
    next += placed.bytes;
    add(placed.entry.name, {{"dtype", spelling_of(placed.entry.dtype)},
                            {"shape", placed.entry.shape},
                            {"data_offsets", {placed.begin, next}}});
  }
  text += "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t header_bytes = text.size();
  for (PlacedEntry& placed : entries) placed.begin += 8 + static_cast<std::int64_t>(header_bytes);
  std::string prefix(8, '\0');
  std::memcpy(prefix.data(), &header_bytes, 8);
  return prefix + text;
}

}  // namespace tessera::hf
