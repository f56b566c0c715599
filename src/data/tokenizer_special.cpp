// SPDX-License-Identifier: Apache-2.0
#include "tokenizer_special.hpp"

#include <nlohmann/json.hpp>

#include "tessera/base/file.hpp"
#include "tessera/base/json.hpp"
#include "tessera/base/log.hpp"

namespace tessera::data {
namespace {

constexpr std::string_view kUsualBos[] = {"<|begin_of_text|>", "<|startoftext|>", "<s>", "<bos>"};
constexpr std::string_view kUsualEos[] = {"<|end_of_text|>", "<|endoftext|>", "</s>", "<eos>"};

using Ids = StringMap<std::int32_t>;

std::optional<int> id_in(const Ids& ids, std::string_view token) {
  const auto found = ids.find(token);
  return found == ids.end() ? std::nullopt : std::optional<int>(found->second);
}

template <std::size_t n>
std::optional<int> first_of(const Ids& ids, const std::string_view (&names)[n]) {
  for (const std::string_view name : names) {
    if (const auto id = id_in(ids, name)) return id;
  }
  return std::nullopt;
}

/// What the template puts before and after the text, wherever in the post-processor it is.
SpecialIds from_template(const JsonNode& node, const Ids& ids) {
  SpecialIds found;
  if (node.is_null()) return found;
  const std::string& type = node["type"].string();
  const JsonNode list = node[type == "Sequence" ? "processors" : "single"];
  bool after_text = false;
  for (std::size_t i = 0;
       (type == "Sequence" || type == "TemplateProcessing") && i < list.array().size(); ++i) {
    if (type == "Sequence") {
      const SpecialIds inner = from_template(list[i], ids);
      found.bos = inner.bos ? inner.bos : found.bos;
      found.eos = inner.eos ? inner.eos : found.eos;
    } else if (const JsonNode token = list[i]["SpecialToken"]; !token.is_null()) {
      (after_text ? found.eos : found.bos) = id_in(ids, token["id"].string());
    } else {
      after_text = true;
    }
  }
  return found;
}

/// `id` as the configuration has it: replaced by its token, removed by its null, left where it says
/// nothing. A token that is not there leaves it, with a warning: transformers would add the token,
/// so that published files may have one.
void apply_config(const nlohmann::json& config, const TextSource& source, const char* key,
                  const Ids& ids, std::optional<int>& id) {
  if (!config.is_object() || !config.contains(key)) return;
  const JsonNode node = JsonNode(config, source)[key];
  if (node.is_null()) {
    id.reset();
    return;
  }
  const std::string& token = node.is_object() ? node["content"].string() : node.string();
  if (const auto named = id_in(ids, token))
    id = named;
  else
    log::warning("{}: {} is not in tokenizer.json and is ignored; correct it, or add the token",
                 node.where(), json_text(nlohmann::json(token)));
}

}  // namespace

SpecialIds find_special_ids(const JsonNode& tokenizer, const std::filesystem::path& config,
                            const Ids& ids) {
  SpecialIds found = from_template(tokenizer["post_processor"], ids);
  if (!found.bos) found.bos = first_of(ids, kUsualBos);
  if (!found.eos) found.eos = first_of(ids, kUsualEos);
  std::error_code ignored;
  if (!std::filesystem::exists(config, ignored)) return found;
  const TextSource source{config, ExitCode::data};
  const nlohmann::json document =
      parse_json(read_text(config, kMostTokenizerBytes, ExitCode::data), source);
  apply_config(document, source, "bos_token", ids, found.bos);
  apply_config(document, source, "eos_token", ids, found.eos);
  return found;
}

}  // namespace tessera::data
