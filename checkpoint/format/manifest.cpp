// SPDX-License-Identifier: Apache-2.0
#include "format/manifest.hpp"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <nlohmann/json.hpp>
#include <set>

#include "tessera/base/box.hpp"
#include "tessera/base/crc32c.hpp"
#include "tessera/base/json.hpp"
#include "tessera/base/json_reader.hpp"

namespace tessera::checkpoint {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t kMostRuns = 16;
constexpr std::string_view kSealKey = "\"crc32c\": \"";
constexpr std::size_t kSealBytes = 11 + 8 + 4;  // key, eight digits, end of string and object

std::string now_utc() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string hex(std::uint32_t crc) { return fmt::format("{:08x}", crc); }

std::string seal_of(std::string_view text) {
  return fmt::format("{}{}\"\n}}\n", kSealKey, hex(crc32c(0, text.data(), text.size())));
}

void check_seal(std::string_view text, const TextSource& source) {
  if (text.size() < kSealBytes ||
      text.substr(text.size() - kSealBytes) != seal_of(text.substr(0, text.size() - kSealBytes)))
    source.damaged("its checksum does not match its contents");
}

OrderedJson to_json(const TableRecord& table) {
  return {{"offset", table.offset}, {"count", table.count}, {"crc32c", hex(table.crc)}};
}

OrderedJson to_json(const ShardRecord& shard) {
  OrderedJson runs = OrderedJson::array();
  for (const Range& run : shard.tensors) runs.push_back({run.begin, run.size});
  return {{"name", shard.name},
          {"bytes", shard.bytes},
          {"header_crc32c", hex(shard.header_crc)},
          {"box_dims", shard.box_dims},
          {"boxes", to_json(shard.boxes)},
          {"checksums", to_json(shard.checksums)},
          {"tensors", runs}};
}

std::uint32_t crc_in(const JsonNode& node) {
  const std::string& text = node.string();
  std::uint32_t crc = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), crc, 16);
  if (text.size() != 8 || error != std::errc() || end != text.data() + text.size())
    node.refuse("not a checksum");
  return crc;
}

/// The table is in a file of `file_bytes` bytes.
TableRecord parse_table(const JsonNode& node, std::int64_t row_bytes, std::int64_t file_bytes) {
  const TableRecord table{node["offset"].count(), node["count"].count(), crc_in(node["crc32c"])};
  if (table.offset > file_bytes || table.count > (file_bytes - table.offset) / row_bytes)
    node.refuse("a table extends beyond its file");
  return table;
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name.front() != '.' && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

Range parse_run(const JsonNode& node, std::int64_t tensors) {
  if (node.array().size() != 2) node.refuse("a run of tensors is not a pair of numbers");
  const Range run{node[0].count(), node[1].count()};
  if (run.begin > tensors || run.size > tensors - run.begin)
    node.refuse("a run of tensors extends beyond the table");
  return run;
}

ShardRecord parse_shard(const JsonNode& node, std::int64_t tensors) {
  ShardRecord shard;
  shard.name = node["name"].string();
  if (!is_plain_name(shard.name)) node["name"].refuse("not a plain file name");
  shard.bytes = node["bytes"].count();
  shard.header_crc = crc_in(node["header_crc32c"]);
  shard.box_dims = node["box_dims"].integer(0, 32);
  shard.boxes = parse_table(node["boxes"], shard.box_row_bytes(), shard.bytes);
  shard.checksums = parse_table(node["checksums"], 4, shard.bytes);
  const JsonNode runs = node["tensors"];
  if (runs.array().size() > kMostRuns) runs.refuse("a file's tensors are not a list of few runs");
  for (std::size_t i = 0; i < runs.size(); ++i)
    shard.tensors.push_back(parse_run(runs[i], tensors));
  return shard;
}

TensorInfo parse_tensor(const JsonNode& node) {
  if (node.array().size() < 3) node.refuse("a tensor is not [name, type, shape]");
  const auto dtype = dtype_from_name(node[1].string());
  if (!dtype) node[1].refuse(fmt::format("unknown element type \"{}\"", node[1].string()));
  TensorInfo tensor{node[0].string(), *dtype, shape_in(node[2])};
  if (!checked_bytes(tensor.shape, tensor.dtype)) node.refuse("the shape is too large");
  return tensor;
}

void check_version(const JsonNode& root) {
  if (root["format"].string() != "tessera-checkpoint")
    root["format"].refuse("not a tessera-checkpoint");
  const JsonNode version = root["version"];
  if (version.array().size() != 2) version.refuse("not [major, minor]");
  const std::int64_t major = version[0].count();
  require(major == kFormatMajor, root.source().kind,
          "{} has format version {} and this program reads version {}; use the version of Tessera "
          "that wrote it, or a "
          "newer one",
          root.where(), major, kFormatMajor);
  if (root["block_bytes"].count() != kBlockBytes) root["block_bytes"].refuse("not 4 MiB");
}

template <class List>
void check_unique(const List& list, const char* what, const TextSource& source) {
  std::set<std::string_view> names;
  for (const auto& item : list)
    if (!names.insert(item.name).second)
      source.damaged(fmt::format("{} {} occurs twice", what, item.name));
}

std::vector<ShardRecord> parse_shard_list(const JsonNode& list, std::int64_t tensors) {
  std::vector<ShardRecord> shards;
  for (std::size_t i = 0; i < list.array().size(); ++i)
    shards.push_back(parse_shard(list[i], tensors));
  return shards;
}

void parse_lists(const JsonNode& root, Manifest& manifest) {
  const JsonNode tensors = root["tensors"];
  for (std::size_t i = 0; i < tensors.array().size(); ++i)
    manifest.tensors.push_back(parse_tensor(tensors[i]));
  manifest.shards =
      parse_shard_list(root["files"], static_cast<std::int64_t>(manifest.tensors.size()));
  check_unique(manifest.tensors, "tensor", root.source());
  check_unique(manifest.shards, "file", root.source());
}

/// Lists have a line for each item, so that people can read the file and diff two of them.
template <class List, class ToJson>
void append_list(std::string& text, const char* key, const List& list, const ToJson& to_json_of) {
  text += fmt::format("\"{}\": [", key);
  const char* separator = "\n";
  for (const auto& item : list) {
    text += separator + json_text(to_json_of(item));
    separator = ",\n";
  }
  text += "\n],\n";
}

}  // namespace

bool ShardRecord::may_hold(std::int64_t tensor) const {
  return std::any_of(tensors.begin(), tensors.end(), [tensor](const Range& run) {
    return run.begin <= tensor && tensor < run.end();
  });
}

Manifest new_manifest(std::string uuid, std::int64_t step, std::string mesh,
                      std::string config_toml, std::string extra, std::vector<TensorInfo> tensors) {
  return {std::move(uuid),
          step,
          std::move(mesh),
          now_utc(),
          "tessera " TESSERA_VERSION,
          std::move(config_toml),
          std::move(extra),
          std::move(tensors),
          {}};
}

std::string to_text(const ShardRecord& shard) { return json_text(to_json(shard)); }

std::string to_text(const Manifest& manifest) {
  OrderedJson head = {{"format", "tessera-checkpoint"},
                      {"version", {kFormatMajor, kFormatMinor}},
                      {"block_bytes", kBlockBytes},
                      {"uuid", manifest.uuid},
                      {"step", manifest.step},
                      {"mesh", manifest.mesh},
                      {"written", manifest.written},
                      {"writer", manifest.writer},
                      {"state", parse_ordered_json(manifest.extra)},
                      {"config", manifest.config_toml}};
  std::string text = "{\n";
  for (const auto& [key, value] : head.items())
    text += fmt::format("\"{}\": {},\n", key, json_text(value));
  append_list(text, "tensors", manifest.tensors, [](const TensorInfo& tensor) {
    return OrderedJson::array({tensor.name, name_of(tensor.dtype), tensor.shape});
  });
  append_list(text, "files", manifest.shards,
              [](const ShardRecord& shard) { return to_json(shard); });
  return text + seal_of(text);
}

Manifest parse_manifest(std::string_view text, const std::filesystem::path& path) {
  const TextSource source{path, ExitCode::checkpoint};
  check_seal(text, source);
  const nlohmann::json json = parse_json(text, source);
  const JsonNode root(json, source);
  check_version(root);
  Manifest manifest;
  manifest.uuid = root["uuid"].string();
  manifest.step = root["step"].count();
  manifest.mesh = root["mesh"].string();
  manifest.written = root["written"].string();
  manifest.writer = root["writer"].string();
  manifest.config_toml = root["config"].string();
  if (!json.contains("state")) root.refuse("\"state\" is missing");
  manifest.extra = json_text(json["state"]);
  parse_lists(root, manifest);
  return manifest;
}

std::vector<ShardRecord> parse_shards(std::string_view list, std::int64_t tensors,
                                      const std::filesystem::path& path) {
  const TextSource source{path, ExitCode::checkpoint};
  const nlohmann::json json = parse_json(list, source);
  return parse_shard_list(JsonNode(json, source), tensors);
}

std::vector<Range> few_runs(const std::vector<std::int64_t>& numbers) {
  std::vector<Range> runs;
  for (const std::int64_t number : numbers) {
    if (runs.empty() || number > runs.back().end()) runs.push_back({number, 0});
    runs.back().size = number + 1 - runs.back().begin;
  }
  while (runs.size() > kMostRuns) {
    std::size_t best = 1;
    for (std::size_t i = 1; i < runs.size(); ++i)
      if (runs[i].begin - runs[i - 1].end() < runs[best].begin - runs[best - 1].end()) best = i;
    runs[best - 1].size = runs[best].end() - runs[best - 1].begin;
    runs.erase(runs.begin() + static_cast<std::ptrdiff_t>(best));
  }
  return runs;
}

}  // namespace tessera::checkpoint
