// SPDX-License-Identifier: Apache-2.0
// tokenizer.json -> Tokenizer::Parts. What a file asks for beyond byte-level BPE is refused with a
// message.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "byte_alphabet.hpp"
#include "content_hash.hpp"
#include "nfc.hpp"
#include "tessera/base/file.hpp"
#include "tessera/base/json.hpp"
#include "tessera/base/json_reader.hpp"
#include "tessera/base/log.hpp"
#include "tokenizer_parts.hpp"
#include "tokenizer_special.hpp"

namespace tessera::data {
namespace {

constexpr std::int64_t kMaxId = (std::int64_t{1} << 24) - 1;
using Parts = Tokenizer::Parts;

void refuse_if_set(const JsonNode& node) {
  if (!node.is_null() && !(node.is_string() && node.string().empty())) {
    node.refuse("this is not supported by byte-level BPE; use a tokenizer without it");
  }
}

void check_model(const JsonNode& model) {
  const JsonNode type = model["type"];
  if (!type.is_null() && type.string() != "BPE") {
    type.refuse("the model '" + type.string() + "' is not supported; only byte-level BPE is");
  }
  refuse_if_set(model["dropout"]);
  refuse_if_set(model["continuing_subword_prefix"]);
  refuse_if_set(model["end_of_word_suffix"]);
  if (model["byte_fallback"].boolean(false))
    model.refuse("byte_fallback is not supported; only byte-level BPE is");
}

/// Reads "normalizer": none, NFC, or a Sequence of these. Returns whether text is normalised.
bool read_normalizer(const JsonNode& node) {
  if (node.is_null()) return false;
  const std::string& type = node["type"].string();
  if (type == "NFC") return true;
  if (type != "Sequence")
    node.refuse("the normalizer '" + type + "' is not supported; use NFC or none");
  const JsonNode list = node["normalizers"];
  bool nfc = false;
  for (std::size_t i = 0; i < list.array().size(); ++i) nfc |= read_normalizer(list[i]);
  return nfc;
}

void check_decoder(const JsonNode& node) {
  if (node.is_null()) return;
  const std::string& type = node["type"].string();
  if (type == "ByteLevel" || type == "Fuse") return;
  if (type != "Sequence") node.refuse("the decoder '" + type + "' is not supported; use ByteLevel");
  const JsonNode list = node["decoders"];
  for (std::size_t i = 0; i < list.array().size(); ++i) check_decoder(list[i]);
}

/// Puts tokens into the tables by id, which must be unique and close together.
class Vocabulary {
 public:
  Vocabulary(Parts& parts, std::size_t tokens)
      : parts_(parts), most_(std::min(kMaxId, 16 * static_cast<std::int64_t>(tokens) + 65536)) {}

  std::int64_t most() const { return most_; }

  void add(const JsonNode& where, const std::string& text, std::int32_t id, std::string bytes,
           Parts::Kind kind) {
    if (static_cast<std::size_t>(id) >= parts_.bytes.size()) {
      parts_.bytes.resize(static_cast<std::size_t>(id) + 1);
      parts_.kinds.resize(parts_.bytes.size(), Parts::Kind::absent);
    }
    if (parts_.kinds[id] != Parts::Kind::absent)
      where.refuse("id " + std::to_string(id) + " has two tokens");
    parts_.bytes[id] = std::move(bytes);
    parts_.kinds[id] = kind;
    parts_.ids.emplace(text, id);
  }

 private:
  Parts& parts_;
  std::int64_t most_;
};

void read_vocab(const JsonNode& node, Vocabulary& vocabulary, Parts& parts, bool ignore_merges) {
  for (const auto& [text, value] : node.object().items()) {
    const auto id = static_cast<std::int32_t>(node[text].integer(0, vocabulary.most()));
    const auto bytes = from_byte_alphabet(text);
    if (ignore_merges && bytes) parts.whole_words.emplace(*bytes, id);
    vocabulary.add(node, text, id, bytes.value_or(text), Parts::Kind::ordinary);
  }
}

void read_bytes(const JsonNode& model, Parts& parts) {
  int missing = 0;
  for (int byte = 0; byte < 256; ++byte) {
    const auto found = parts.ids.find(byte_alphabet()[byte]);
    missing += found == parts.ids.end();
    if (found != parts.ids.end())
      parts.bpe.set_byte(static_cast<std::uint8_t>(byte), found->second);
  }
  if (missing == 0) return;
  if (!model["unk_token"].is_null())
    model["unk_token"].refuse("unknown tokens are not supported, and the vocabulary lacks bytes");
  log::warning("{}: the vocabulary lacks {} of the 256 bytes; tokenizing skips them", model.where(),
               missing);
}

std::pair<std::string, std::string> merge_pair(const JsonNode& merge) {
  if (merge.is_array()) {
    if (merge.size() != 2) merge.refuse("a merge joins two tokens");
    return {merge[0].string(), merge[1].string()};
  }
  const std::string& both = merge.string();
  const std::size_t blank = both.find(' ');
  if (blank == both.npos || both.find(' ', blank + 1) != both.npos)
    merge.refuse("a merge is two tokens separated by a blank");
  return {both.substr(0, blank), both.substr(blank + 1)};
}

std::int32_t merge_part(const Parts& parts, const JsonNode& merge, const std::string& token) {
  const auto found = parts.ids.find(token);
  if (found == parts.ids.end()) merge.refuse("the token '" + token + "' is not in the vocabulary");
  return found->second;
}

void read_merges(const JsonNode& list, Parts& parts) {
  std::uint32_t rank = 0;
  for (std::size_t i = 0; i < list.array().size(); ++i) {
    const JsonNode merge = list[i];
    if (merge.is_string() && merge.string().starts_with("#version")) continue;
    const auto [left, right] = merge_pair(merge);
    const std::int32_t left_id = merge_part(parts, merge, left),
                       right_id = merge_part(parts, merge, right);
    parts.bpe.set_merge(left_id, right_id, rank++, merge_part(parts, merge, left + right));
  }
}

AddedToken read_added_token(const JsonNode& node, std::int64_t most) {
  AddedToken token;
  token.content = node["content"].string();
  token.id = static_cast<std::int32_t>(node["id"].integer(0, most));
  token.single_word = node["single_word"].boolean(false);
  token.lstrip = node["lstrip"].boolean(false);
  token.rstrip = node["rstrip"].boolean(false);
  token.special = node["special"].boolean(false);
  token.normalized = node["normalized"].boolean(!token.special);
  return token;
}

void read_added_tokens(const JsonNode& list, Vocabulary& vocabulary, Parts& parts) {
  if (list.is_null()) return;
  for (std::size_t i = 0; i < list.array().size(); ++i) {
    AddedToken token = read_added_token(list[i], vocabulary.most());
    const auto known = parts.ids.find(token.content);
    if (known != parts.ids.end() && known->second != token.id)
      list[i].refuse("it has another id in the vocabulary");
    const auto kind = token.special ? Parts::Kind::special : Parts::Kind::ordinary;
    if (known == parts.ids.end()) {
      vocabulary.add(list[i], token.content, token.id, token.content, kind);
    } else {
      parts.bytes[token.id] = token.content;
      parts.kinds[token.id] = kind;
    }
    if (token.normalized && parts.nfc) token.content = to_nfc(token.content);
    (token.normalized ? parts.normalized_tokens : parts.raw_tokens).add(token);
  }
}

}  // namespace

std::filesystem::path tokenizer_file(const std::filesystem::path& file_or_folder) {
  std::error_code ignored;
  return std::filesystem::is_directory(file_or_folder, ignored) ? file_or_folder / "tokenizer.json"
                                                                : file_or_folder;
}

Tokenizer Tokenizer::load(const std::filesystem::path& file_or_folder) {
  const std::filesystem::path file = tokenizer_file(file_or_folder);
  const TextSource source{file, ExitCode::data};
  const nlohmann::json document =
      parse_json(read_text(file, kMostTokenizerBytes, ExitCode::data), source);
  const JsonNode root(document, source);
  require(root.is_object() && root["model"].is_object(), ExitCode::data,
          "'{}' is not a tokenizer.json (it has no \"model\"); `tessera tokenizer train` makes one",
          file.string());
  const JsonNode model = root["model"], added = root["added_tokens"];
  auto parts = std::make_unique<Parts>();
  parts->content_hash = data::content_hash(json_text(document));
  check_model(model);
  check_decoder(root["decoder"]);
  parts->nfc = read_normalizer(root["normalizer"]);
  parts->pre_tokenizer = PreTokenizer::from_json(root["pre_tokenizer"]);
  Vocabulary vocabulary(
      *parts, model["vocab"].object().size() + (added.is_null() ? 0 : added.array().size()));
  read_vocab(model["vocab"], vocabulary, *parts, model["ignore_merges"].boolean(false));
  read_bytes(model, *parts);
  read_merges(model["merges"], *parts);
  read_added_tokens(added, vocabulary, *parts);
  if (parts->bytes.empty()) model["vocab"].refuse("the vocabulary is empty");
  const SpecialIds special =
      find_special_ids(root, file.parent_path() / "tokenizer_config.json", parts->ids);
  parts->bos_id = special.bos;
  parts->eos_id = special.eos;
  return Tokenizer(std::move(parts));
}

}  // namespace tessera::data
