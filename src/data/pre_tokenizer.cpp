// SPDX-License-Identifier: Apache-2.0
#include "pre_tokenizer.hpp"

#include <nlohmann/json.hpp>

#include "tessera/base/error.hpp"

namespace tessera::data {
namespace {

constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

Regex pattern_of(const JsonNode& pattern) {
  if (pattern.is_string()) return Regex::literal(pattern.string());
  if (const JsonNode literal = pattern["String"]; !literal.is_null())
    return Regex::literal(literal.string());
  const JsonNode regex = pattern["Regex"];
  const std::string& text = regex.string();
  try {
    return Regex::compile(text);
  } catch (const Error& error) {
    regex.refuse(error.what());
  }
}

}  // namespace

PreTokenizer PreTokenizer::from_json(const JsonNode& node) {
  PreTokenizer made;
  if (!node.is_null()) made.add(node);
  if (!made.byte_level_)
    node.refuse(
        "only byte-level BPE is supported (a ByteLevel pre-tokenizer); use such a tokenizer");
  return made;
}

void PreTokenizer::add(const JsonNode& node) {
  const std::string& type = node["type"].string();
  if (byte_level_) node.refuse("nothing may come after ByteLevel; use another tokenizer");
  if (type == "Sequence") {
    const JsonNode list = node["pretokenizers"];
    for (std::size_t i = 0; i < list.array().size(); ++i) add(list[i]);
  } else if (type == "Split") {
    add_split(node);
  } else if (type == "Digits") {
    steps_.push_back(
        {Regex::compile(node["individual_digits"].boolean(false) ? R"(\p{N})" : R"(\p{N}+)")});
  } else if (type == "ByteLevel") {
    add_byte_level(node);
  } else {
    node.refuse("the pre-tokenizer '" + type +
                "' is not supported (Split, Digits, ByteLevel, Sequence are)");
  }
}

void PreTokenizer::add_split(const JsonNode& node) {
  const std::string& behavior = node["behavior"].string();
  const bool invert = node["invert"].boolean(false);
  const bool isolated = behavior == "Isolated", keep_only_matches = behavior == "Removed" && invert;
  if (!isolated && !keep_only_matches) {
    node.refuse("Split with behavior '" + behavior +
                "' is not supported (Isolated is, and Removed with invert)");
  }
  steps_.push_back({pattern_of(node["pattern"]), isolated});
}

void PreTokenizer::add_byte_level(const JsonNode& node) {
  if (node["add_prefix_space"].boolean(true)) steps_.push_back({});
  if (node["use_regex"].boolean(true)) steps_.push_back({Regex::compile(kGpt2Pattern)});
  byte_level_ = true;
}

void PreTokenizer::run(std::string_view text, std::size_t at, const Sink& sink) const {
  if (at == steps_.size()) return sink(text);
  const Step& step = steps_[at];
  if (!step.pattern) {
    return text.starts_with(' ') ? run(text, at + 1, sink)
                                 : run(" " + std::string(text), at + 1, sink);
  }
  step.pattern->for_each_piece(text, [&](std::string_view piece, bool is_match) {
    if (is_match || step.keep_others) run(piece, at + 1, sink);
  });
}

}  // namespace tessera::data
