// SPDX-License-Identifier: Apache-2.0
#include "tessera/hf/assets.hpp"

#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "json_file.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/json.hpp"
#include "tessera/base/log.hpp"
#include "tessera/base/text_file.hpp"
#include "tessera/data/tokenizer.hpp"
#include "tessera/data/tokenizer_record.hpp"

namespace tessera::hf {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

constexpr const char* kTokenizer = "tokenizer.json";
constexpr const char* kTokenizerConfig = "tokenizer_config.json";
constexpr const char* kGenerationConfig = "generation_config.json";
constexpr const char* kModelConfig = "config.json";
constexpr const char* kEndId = "eos_token_id";
constexpr std::array kCopied{kTokenizer, kTokenizerConfig, kGenerationConfig,
                             "special_tokens_map.json", "chat_template.jinja"};

bool is_there(const fs::path& file) {
  std::error_code problem;
  return fs::exists(file, problem);
}

/// Why the tokenizer is not this model's; "" when it may be.
std::string misfit(const data::Tokenizer& tokenizer, const fs::path& place, std::int64_t vocab) {
  if (tokenizer.vocab_size() <= vocab) return "";
  return fmt::format("the tokenizer in '{}' has a vocabulary of {}, and the model one of {}",
                     place.string(), tokenizer.vocab_size(), vocab);
}

/// That the model was trained with another tokenizer; "" if not, or if nobody knows.
std::string stranger(const data::Tokenizer& tokenizer, const fs::path& place,
                     const std::string& trained_with) {
  const std::string own = data::tokenizer_record(tokenizer.content_hash());
  if (!data::other_tokenizer(trained_with, own)) return "";
  return fmt::format("the tokenizer in '{}' is not the one that the model was trained with",
                     place.string());
}

std::string text_of(const data::Tokenizer& tokenizer, std::optional<int> id) {
  if (!id) return "";
  const std::int32_t ids[] = {*id};
  return tokenizer.decode(ids);
}

void take(const data::Tokenizer& tokenizer, const fs::path& place, Assets& assets) {
  assets.tokenizer = data::tokenizer_file(place);
  assets.bos = tokenizer.bos_id();
  assets.eos = tokenizer.eos_id();
  assets.bos_token = text_of(tokenizer, assets.bos);
  assets.eos_token = text_of(tokenizer, assets.eos);
}

/// The special ids of the config.json that the model was made by, if it can still be read.
void ids_of_config(const std::optional<fs::path>& config, Assets& assets) {
  if (!config || !is_there(*config)) return;
  const nlohmann::json json = parse_json(read_text(*config).value_or(""));
  const auto id = [&](const char* key) -> std::optional<int> {
    if (!json.is_object() || !json.contains(key)) return std::nullopt;
    const auto id = whole_number(json[key], 0, std::numeric_limits<int>::max());
    return id ? std::optional(static_cast<int>(*id)) : std::nullopt;
  };
  assets.bos = id("bos_token_id");
  assets.eos = id(kEndId);
}

void copy_beside(const fs::path& from, const fs::path& to) {
  std::error_code problem;
  if (fs::equivalent(from, to, problem)) return;
  problem.clear();
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, problem);
  require(!problem, ExitCode::environment, "cannot copy '{}' to '{}' ({})", from.string(),
          to.string(), problem.message());
}

/// Whether a tokenizer that nobody has named is the model's: by the record of what it was trained
/// with, else by the special ids of its config.json.
bool is_known(const data::Tokenizer& tokenizer, const AssetPlaces& places) {
  if (!places.trained_with.empty())
    return stranger(tokenizer, places.target, places.trained_with).empty();
  Assets by_config;
  ids_of_config(places.config, by_config);
  return by_config.eos && tokenizer.bos_id() == by_config.bos &&
         tokenizer.eos_id() == by_config.eos;
}

/// The tokenizer in the folder that is written, where it is the model's.
void take_from_target(const AssetPlaces& places, std::int64_t vocab, Assets& assets) try {
  if (!is_there(places.target / kTokenizer)) return;
  const data::Tokenizer tokenizer = data::Tokenizer::load(places.target);
  if (misfit(tokenizer, places.target, vocab).empty() && is_known(tokenizer, places))
    take(tokenizer, places.target, assets);
} catch (const Error&) {
  // one that Tessera cannot read is another one
}

fs::path folder_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

/// Another tokenizer, and what is next to it.
void remove_assets(const fs::path& folder) {
  for (const char* name : kCopied) {
    std::error_code problem;
    fs::remove(folder / name, problem);
    require(!problem, ExitCode::environment, "cannot remove '{}' ({})", (folder / name).string(),
            problem.message());
  }
}

bool is_same_file(const fs::path& one, const fs::path& other) {
  std::error_code ignored;
  return fs::equivalent(one, other, ignored) || read_text(one) == read_text(other);
}

bool holds_another(const Assets& assets, const fs::path& folder) {
  const fs::path there = folder / kTokenizer;
  return is_there(there) && !(assets.tokenizer && is_same_file(*assets.tokenizer, there));
}

/// Those of one file. What cannot be read there causes a warning: a text without its end runs on.
void add_end_ids(const fs::path& file, std::vector<std::int32_t>& ids) {
  const nlohmann::json json = parse_json(read_text(file).value_or(""));
  if (!json.is_object())
    log::warning("{} holds no JSON object: text does not end at its {}; correct the file",
                 file.string(), kEndId);
  if (!json.is_object() || !json.contains(kEndId) || json[kEndId].is_null()) return;
  const nlohmann::json& ends = json[kEndId];
  for (const nlohmann::json& end : ends.is_array() ? ends : nlohmann::json::array({ends}))
    if (const auto id = whole_number(end, 0, std::numeric_limits<std::int32_t>::max()))
      ids.push_back(static_cast<std::int32_t>(*id));
    else
      log::warning("{}, {}: {} is no token id, so that text does not end there; correct it",
                   file.string(), kEndId, json_text(end));
}

OrderedJson token_json(const std::string& token) {
  return token.empty() ? OrderedJson() : OrderedJson(token);
}

}  // namespace

Assets find_assets(const AssetPlaces& places, std::int64_t vocab) {
  Assets assets;
  const std::optional<fs::path>& named = places.named;
  const fs::path place = named.value_or(places.usual);
  if (named || is_there(data::tokenizer_file(place))) {
    const data::Tokenizer tokenizer = data::Tokenizer::load(place);
    assets.why_not = misfit(tokenizer, place, vocab);
    require(!named || assets.why_not.empty(), ExitCode::data, "{}; name the tokenizer of the model",
            assets.why_not);
    const std::string other = stranger(tokenizer, place, places.trained_with);
    if (named && !other.empty()) log::warning("{}", other);
    if (!named && assets.why_not.empty()) assets.why_not = other;
    if (assets.why_not.empty()) take(tokenizer, place, assets);
  } else {
    assets.why_not = fmt::format("there is no tokenizer in '{}'", place.string());
  }
  if (!assets.tokenizer) take_from_target(places, vocab, assets);
  if (!assets.tokenizer) ids_of_config(places.config, assets);
  return assets;
}

std::vector<std::int32_t> end_ids(const std::vector<fs::path>& places,
                                  const data::Tokenizer& tokenizer) {
  std::vector<std::int32_t> ids;
  if (const auto own = tokenizer.eos_id()) ids.push_back(*own);
  std::set<fs::path> read;  // places may be the same
  for (const fs::path& place : places) {
    if (place.empty()) continue;
    std::error_code ignored;
    const fs::path folder = fs::is_directory(place, ignored) ? place : place.parent_path();
    for (const char* name : {kGenerationConfig, kModelConfig})
      if (is_there(folder / name) && read.insert(fs::canonical(folder / name, ignored)).second)
        add_end_ids(folder / name, ids);
  }
  return ids;
}

void refuse_another(const Assets& assets, const fs::path& folder) {
  require(!holds_another(assets, folder), ExitCode::usage,
          "'{}' already has another tokenizer; name another folder, or replace it with --force",
          folder.string());
}

void write_assets(const Assets& assets, const fs::path& folder) {
  std::error_code problem;
  const bool inside =
      assets.tokenizer && fs::equivalent(folder_of(*assets.tokenizer), folder, problem);
  if (!inside && holds_another(assets, folder)) remove_assets(folder);
  if (!assets.tokenizer) return;
  const fs::path from = folder_of(*assets.tokenizer);
  copy_beside(*assets.tokenizer, folder / kTokenizer);
  for (const char* name : kCopied)
    if (name != kTokenizer && is_there(from / name)) copy_beside(from / name, folder / name);
  if (!is_there(from / kTokenizerConfig))
    write_json_file(folder / kTokenizerConfig,
                    OrderedJson{{"bos_token", token_json(assets.bos_token)},
                                {"eos_token", token_json(assets.eos_token)},
                                {"clean_up_tokenization_spaces", false},
                                {"tokenizer_class", "PreTrainedTokenizerFast"}});
  if (!is_there(from / kGenerationConfig))
    write_json_file(folder / kGenerationConfig, OrderedJson{{"bos_token_id", id_json(assets.bos)},
                                                            {kEndId, id_json(assets.eos)}});
}

}  // namespace tessera::hf
