// SPDX-License-Identifier: Apache-2.0
#include "tessera/hf/config.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "config_classes.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/json_reader.hpp"
#include "tessera/base/suggest.hpp"
#include "tessera/base/text_file.hpp"

namespace tessera::hf {
namespace {

nlohmann::json parse(const TextSource& source) {
  const auto text = read_text(source.path);
  require(text.has_value(), ExitCode::usage,
          "cannot open {} (model.hf_config); name a Hugging Face config.json",
          source.path.string());
  return parse_json(*text, source);
}

}  // namespace

model::DecoderShape read_config(const std::filesystem::path& file) {
  const TextSource source{file, ExitCode::usage};
  const nlohmann::json parsed = parse(source);
  const JsonNode config(parsed, source);
  const std::string type = config["model_type"].string_or("llama");
  const auto row = std::ranges::find(config_classes(), type, &ConfigClass::model_type);
  if (row == config_classes().end()) {
    std::vector<std::string> known;
    for (const ConfigClass& one : config_classes()) known.emplace_back(one.model_type);
    fail(ExitCode::usage, "{}: model_type \"{}\" is not supported{}; use {}", file.string(), type,
         did_you_mean(type, known), fmt::join(known, ", "));
  }
  model::DecoderShape shape = row->read(config);
  shape.name = type + " (" + file.filename().string() + ")";
  return shape;
}

}  // namespace tessera::hf
