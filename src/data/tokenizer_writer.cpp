// SPDX-License-Identifier: Apache-2.0
#include "byte_alphabet.hpp"
#include "tessera/base/atomic_file.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/json.hpp"
#include "tessera/base/text_file.hpp"
#include "tessera/data/tokenizer_trainer.hpp"
#include "tokenizer_layout.hpp"

namespace tessera::data {
namespace {

using nlohmann::ordered_json;

struct Special {
  std::string token;
  std::size_t id;
};

ordered_json added_tokens(const std::vector<Special>& special) {
  ordered_json list = ordered_json::array();
  for (const auto& [token, id] : special) {
    list.push_back({{"id", id},
                    {"content", token},
                    {"single_word", false},
                    {"lstrip", false},
                    {"rstrip", false},
                    {"normalized", false},
                    {"special", true}});
  }
  return list;
}

/// "post_processor": puts BOS in front for those who ask Hugging Face's encode for special tokens.
ordered_json post_processor(const Special* bos) {
  const ordered_json bytes = {{"type", "ByteLevel"},
                              {"add_prefix_space", true},
                              {"trim_offsets", false},
                              {"use_regex", true}};
  if (bos == nullptr) return bytes;
  const auto token = [&](int type) {
    return ordered_json{{"SpecialToken", {{"id", bos->token}, {"type_id", type}}}};
  };
  const auto text = [](const char* name, int type) {
    return ordered_json{{"Sequence", {{"id", name}, {"type_id", type}}}};
  };
  const ordered_json entry = {{"id", bos->token},
                              {"ids", ordered_json::array({bos->id})},
                              {"tokens", ordered_json::array({bos->token})}};
  const ordered_json around = {
      {"type", "TemplateProcessing"},
      {"single", ordered_json::array({token(0), text("A", 0)})},
      {"pair", ordered_json::array({token(0), text("A", 0), token(1), text("B", 1)})},
      {"special_tokens", {{bos->token, entry}}}};
  return {{"type", "Sequence"}, {"processors", ordered_json::array({bytes, around})}};
}

ordered_json model(const TrainedVocabulary& vocabulary, Pattern pattern) {
  ordered_json vocab = ordered_json::object(), merges = ordered_json::array();
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id)
    vocab.emplace(vocabulary.tokens[id], id);
  for (const auto& [left, right] : vocabulary.merges) {
    merges.push_back(vocabulary.tokens[left] + " " + vocabulary.tokens[right]);
  }
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", false},
          {"byte_fallback", false},
          {"ignore_merges", pattern == Pattern::llama3},
          {"vocab", std::move(vocab)},
          {"merges", std::move(merges)}};
}

constexpr const char* kTokenizerJson = "tokenizer.json";

/// Tokens and models of the one that is there would lose their tokenizer.
void refuse_another(const std::filesystem::path& folder, const ordered_json& document) {
  const auto text = read_text(folder / kTokenizerJson);
  require(!text || parse_json(*text) == nlohmann::json(document), ExitCode::usage,
          "'{}' has another tokenizer; name another folder, or replace it with --force",
          folder.string());
}

void write_json(const std::filesystem::path& path, const ordered_json& document) {
  write_file_atomically(path, json_text(document, 2) + "\n");
}

}  // namespace

void write_tokenizer(const std::filesystem::path& folder, const TrainedVocabulary& vocabulary,
                     const TrainerOptions& options, bool replace) {
  make_folders(folder, ExitCode::environment);
  std::vector<Special> special;
  for (const std::string& token : options.special_tokens)
    special.push_back({token, vocabulary.tokens.size() + special.size()});
  const auto [bos, eos] = special_roles(special.size());
  const auto name = [&](int role) {
    return role < 0 ? ordered_json() : ordered_json(special[role].token);
  };
  const ordered_json document = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", added_tokens(special)},
      {"normalizer", normalizer_layout(options.pattern)},
      {"pre_tokenizer", pre_tokenizer_layout(options.pattern)},
      {"post_processor", post_processor(bos < 0 ? nullptr : &special[bos])},
      {"decoder",
       {{"type", "ByteLevel"},
        {"add_prefix_space", true},
        {"trim_offsets", true},
        {"use_regex", true}}},
      {"model", model(vocabulary, options.pattern)}};
  if (!replace) refuse_another(folder, document);
  write_json(folder / kTokenizerJson, document);
  write_json(folder / "tokenizer_config.json", {{"bos_token", name(bos)},
                                                {"eos_token", name(eos)},
                                                {"clean_up_tokenization_spaces", false},
                                                {"tokenizer_class", "PreTrainedTokenizerFast"}});
}

}  // namespace tessera::data
