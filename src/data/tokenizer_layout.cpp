// SPDX-License-Identifier: Apache-2.0
#include "tokenizer_layout.hpp"

#include "tessera/base/error.hpp"

namespace tessera::data {
namespace {

using nlohmann::ordered_json;

constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

ordered_json byte_level(bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

}  // namespace

Pattern pattern_from_name(const std::string& name) {
  if (name == "gpt2") return Pattern::gpt2;
  if (name == "llama3") return Pattern::llama3;
  if (name == "qwen") return Pattern::qwen;
  fail(ExitCode::usage, "unknown pattern '{}'; use gpt2, llama3 or qwen", name);
}

std::vector<std::string> usual_special_tokens(Pattern pattern) {
  if (pattern == Pattern::llama3) return {"<|begin_of_text|>", "<|end_of_text|>"};
  return {"<|endoftext|>"};
}

bool normalizes(Pattern pattern) { return pattern == Pattern::qwen; }

ordered_json normalizer_layout(Pattern pattern) {
  return normalizes(pattern) ? ordered_json{{"type", "NFC"}} : ordered_json();
}

ordered_json pre_tokenizer_layout(Pattern pattern) {
  if (pattern == Pattern::gpt2) return byte_level(true);
  const char* regex = pattern == Pattern::qwen ? kQwen : kLlama3;
  const ordered_json split = {{"type", "Split"},
                              {"pattern", {{"Regex", regex}}},
                              {"behavior", "Isolated"},
                              {"invert", false}};
  return {{"type", "Sequence"}, {"pretokenizers", ordered_json::array({split, byte_level(false)})}};
}

SpecialRoles special_roles(std::size_t special_tokens) {
  if (special_tokens == 0) return {};
  return special_tokens == 1 ? SpecialRoles{-1, 0} : SpecialRoles{0, 1};
}

}  // namespace tessera::data
