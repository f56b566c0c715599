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

/// "model_type"; where it is absent, that of the first class in "architectures" that is known.
std::string model_type_of(const JsonNode& config) {
  const JsonNode type = config["model_type"], classes = config["architectures"];
  if (!type.is_null()) return type.string();
  for (std::size_t i = 0; classes.is_array() && i < classes.size(); ++i) {
    const auto row =
        std::ranges::find(config_classes(), classes[i].string(), &ConfigClass::architecture);
    if (row != config_classes().end()) return std::string(row->model_type);
  }
  type.refuse("it is missing, and \"architectures\" names no class that Tessera knows");
}

}  // namespace

model::DecoderShape read_config(const std::filesystem::path& file) {
  const TextSource source{file, ExitCode::usage};
  const nlohmann::json parsed = parse(source);
  const JsonNode config(parsed, source);
  const std::string type = model_type_of(config);
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
