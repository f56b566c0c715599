// SPDX-License-Identifier: Apache-2.0
#include "manifest.hpp"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <set>

#include "box.hpp"
#include "json_text.hpp"
#include "tessera/base/crc32c.hpp"
#include "tessera/base/json.hpp"

namespace tessera::checkpoint {
namespace {

using Json = nlohmann::json;
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

std::uint32_t crc_member(const Json& object, const char* key, const TextSource& source) {
  const std::string text = text_member(object, key, source);
  std::uint32_t crc = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), crc, 16);
  if (text.size() != 8 || error != std::errc() || end != text.data() + text.size())
    source.damaged(fmt::format("\"{}\" is not a checksum", key));
  return crc;
}

/// The table lies in a file of `file_bytes` bytes.
TableRecord parse_table(const Json& json, std::int64_t row_bytes, std::int64_t file_bytes,
                        const TextSource& source) {
  const TableRecord table{count_member(json, "offset", source), count_member(json, "count", source),
                          crc_member(json, "crc32c", source)};
  if (table.offset > file_bytes || table.count > (file_bytes - table.offset) / row_bytes)
    source.damaged("a table extends beyond its file");
  return table;
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name.front() != '.' && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

Range parse_run(const Json& json, std::int64_t tensors, const TextSource& source) {
  if (!json.is_array() || json.size() != 2)
    source.damaged("a run of tensors is not a pair of numbers");
  const Range run{to_count(json[0], "a tensor's number", source),
                  to_count(json[1], "a run's length", source)};
  if (run.begin > tensors || run.size > tensors - run.begin)
    source.damaged("a run of tensors extends beyond the table");
  return run;
}

ShardRecord parse_shard(const Json& json, std::int64_t tensors, const TextSource& source) {
  ShardRecord shard;
  shard.name = text_member(json, "name", source);
  if (!is_plain_name(shard.name))
    source.damaged(fmt::format("\"{}\" is not a plain file name", shard.name));
  shard.bytes = count_member(json, "bytes", source);
  shard.header_crc = crc_member(json, "header_crc32c", source);
  shard.box_dims = count_member(json, "box_dims", source);
  if (shard.box_dims > 32) source.damaged("a box table has more than 32 dimensions");
  shard.boxes =
      parse_table(member(json, "boxes", source), shard.box_row_bytes(), shard.bytes, source);
  shard.checksums = parse_table(member(json, "checksums", source), 4, shard.bytes, source);
  const Json& runs = member(json, "tensors", source);
  if (!runs.is_array() || runs.size() > kMostRuns)
    source.damaged("a file's tensors are not a list of few runs");
  for (const Json& run : runs) shard.tensors.push_back(parse_run(run, tensors, source));
  return shard;
}

TensorInfo parse_tensor(const Json& json, const TextSource& source) {
  if (!json.is_array() || json.size() < 3 || !json[0].is_string() || !json[1].is_string())
    source.damaged("a tensor is not [name, type, shape]");
  const auto dtype = dtype_from_name(json[1].get<std::string>());
  if (!dtype)
    source.damaged(fmt::format("unknown element type \"{}\"", json[1].get<std::string>()));
  TensorInfo tensor{json[0].get<std::string>(), *dtype, to_shape(json[2], source)};
  if (!checked_bytes(tensor.shape, tensor.dtype))
    source.damaged(fmt::format("the shape of {} is too large", tensor.name));
  return tensor;
}

void check_version(const Json& json, const TextSource& source) {
  if (text_member(json, "format", source) != "tessera-checkpoint")
    source.damaged("not a tessera-checkpoint");
  const Json& version = member(json, "version", source);
  if (!version.is_array() || version.size() != 2)
    source.damaged("\"version\" is not [major, minor]");
  const std::int64_t major = to_count(version[0], "the version", source);
  require(major == kFormatMajor, source.kind,
          "{} has format version {} and this program reads version {}; use the version of Tessera "
          "that wrote it, or a "
          "newer one",
          source.path.string(), major, kFormatMajor);
  if (count_member(json, "block_bytes", source) != kBlockBytes)
    source.damaged("\"block_bytes\" is not 4 MiB");
}

template <class List>
void check_unique(const List& list, const char* what, const TextSource& source) {
  std::set<std::string_view> names;
  for (const auto& item : list)
    if (!names.insert(item.name).second)
      source.damaged(fmt::format("{} {} occurs twice", what, item.name));
}

void parse_lists(const Json& json, Manifest& manifest, const TextSource& source) {
  const Json &tensors = member(json, "tensors", source), &files = member(json, "files", source);
  if (!tensors.is_array() || !files.is_array())
    source.damaged("\"tensors\" or \"files\" is not a list");
  for (const Json& tensor : tensors) manifest.tensors.push_back(parse_tensor(tensor, source));
  for (const Json& file : files)
    manifest.shards.push_back(
        parse_shard(file, static_cast<std::int64_t>(manifest.tensors.size()), source));
  check_unique(manifest.tensors, "tensor", source);
  check_unique(manifest.shards, "file", source);
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
  const Json json = parse_json(text, source);
  check_version(json, source);
  Manifest manifest;
  manifest.uuid = text_member(json, "uuid", source);
  manifest.step = count_member(json, "step", source);
  manifest.mesh = text_member(json, "mesh", source);
  manifest.written = text_member(json, "written", source);
  manifest.writer = text_member(json, "writer", source);
  manifest.config_toml = text_member(json, "config", source);
  manifest.extra = json_text(member(json, "state", source));
  parse_lists(json, manifest, source);
  return manifest;
}

std::vector<ShardRecord> parse_shards(std::string_view list, std::int64_t tensors,
                                      const std::filesystem::path& path) {
  const TextSource source{path, ExitCode::checkpoint};
  std::vector<ShardRecord> shards;
  for (const Json& shard : parse_json(list, source))
    shards.push_back(parse_shard(shard, tensors, source));
  return shards;
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
