// SPDX-License-Identifier: Apache-2.0
// tessera tokenizer train | encode | decode.
#include <fmt/format.h>

#include <cstdio>
#include <functional>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "command.hpp"
#include "command_line.hpp"
#include "corpus_flags.hpp"
#include "tessera/base/atomic_file.hpp"
#include "tessera/base/json.hpp"
#include "tessera/base/log.hpp"
#include "tessera/data/tokenizer.hpp"
#include "tessera/data/tokenizer_trainer.hpp"

namespace {

using nlohmann::json;
using tessera::ExitCode;
using tessera::require;
namespace data = tessera::data;

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

struct Train {
  tessera::app::CorpusFlags corpus;
  data::TrainerOptions options;
  std::string pattern = "llama3", output;
  std::optional<std::string> special;
  bool replace = false;
  tessera::app::Flags app;

  explicit Train(tessera::app::Flags& parent)
      : app(parent.add_subcommand("train", "learn byte-level BPE from text")) {
    app.add_option("--vocab-size", options.vocab_size,
                   "size of the vocabulary: 256 bytes, merges and special tokens [2048]");
    app.add_option("--pattern", pattern,
                   "how text is split into words: llama3, gpt2 or qwen [llama3]");
    app.add_option("--special", special, "special tokens, comma-separated [those of the pattern]");
    app.add_option("-o,--output", output, "folder for tokenizer.json and tokenizer_config.json")
        .required();
    app.add_flag("--force", replace, "replace another tokenizer in that folder");
    corpus.add_to(app);
  }

  /// What can be known before hours of training; the rest is compared when it is written.
  /// Short texts give fewer words than were asked for.
  void check_output() const {
    std::error_code ignored;
    const bool is_new = !std::filesystem::exists(output, ignored);
    require(is_new || std::filesystem::is_directory(output, ignored), ExitCode::usage,
            "'{}' is a file; name a folder with --output", output);
    const tessera::FileErrors errors{ExitCode::environment, "--output"};
    tessera::make_folders(output, errors);
    const std::filesystem::path there = data::tokenizer_file(output);
    { const tessera::AtomicFile tried(there, errors); }
    if (is_new) std::filesystem::remove(output, ignored);  // until there is something to write
    if (replace || !std::filesystem::exists(there, ignored)) return;
    require(data::Tokenizer::load(there).vocab_size() <= options.vocab_size, ExitCode::usage,
            "'{}' has another tokenizer; name another folder, or replace it with --force", output);
  }

  int run() {
    options.pattern = data::pattern_from_name(pattern);
    options.special_tokens =
        special ? split_at_commas(*special) : data::usual_special_tokens(options.pattern);
    check_output();
    const auto vocabulary = data::train_vocabulary(corpus.open(output), options,
                                                   data::terminal_progress("tokenizer train"));
    data::write_tokenizer(output, vocabulary, options, replace);
    const std::size_t special_tokens = options.special_tokens.size();
    const std::size_t size = vocabulary.tokens.size() + special_tokens;
    if (std::cmp_less(size, options.vocab_size))
      tessera::log::warning("the text has no more pairs to merge: {} tokens instead of {}", size,
                            options.vocab_size);
    std::cout << fmt::format("{}: vocabulary of {}: 256 bytes, {} merges, {} special tokens\n",
                             output, size, vocabulary.merges.size(), special_tokens);
    return 0;
  }
};

/// Reads JSON values from standard input, one a line, and writes answer(value), one a line.
int answer_lines(const std::function<json(const json&)>& answer) {
  std::string line;
  for (std::int64_t number = 1; std::getline(std::cin, line); ++number) {
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    const json value = tessera::parse_json(line);
    try {
      require(!value.is_discarded(), ExitCode::data,
              "not valid JSON; write one value on each line");
      std::cout << tessera::json_text(answer(value)) << '\n';
      if (!std::cout) return 0;  // main() says so
    } catch (const tessera::Error& error) {
      tessera::fail(error.code(), "standard input:{}: {}", number, error.what());
    }
  }
  require(std::ferror(stdin) == 0, ExitCode::environment,
          "cannot read standard input; give a file or a pipe");
  return 0;
}

json encode(const data::Tokenizer& tokenizer, const json& value) {
  require(value.is_string(), ExitCode::data, "a JSON string is needed, not {}", value.type_name());
  return tokenizer.encode(value.get_ref<const std::string&>());
}

std::int32_t id_from(const json& value) {
  const auto id = tessera::whole_number(value, 0, std::numeric_limits<std::int32_t>::max());
  require(id.has_value(), ExitCode::data, "an id is an integer of 31 bits, not {}",
          value.is_number() ? tessera::json_text(value) : value.type_name());
  return static_cast<std::int32_t>(*id);
}

json decode(const data::Tokenizer& tokenizer, const json& value) {
  require(value.is_array(), ExitCode::data, "a JSON list of ids is needed, not {}",
          value.type_name());
  std::vector<std::int32_t> ids;
  for (const json& id : value) ids.push_back(id_from(id));
  return tokenizer.decode(ids);
}

struct Convert {
  std::string file;
  tessera::app::Flags app;

  Convert(tessera::app::Flags& parent, const char* name, const char* summary)
      : app(parent.add_subcommand(name, summary)) {
    app.add_option("--tokenizer,tokenizer", file, "tokenizer.json or its folder; needed once");
  }

  int run(json (*convert)(const data::Tokenizer&, const json&)) const {
    tessera::require(!file.empty(), tessera::ExitCode::usage,
                     "name a tokenizer: a tokenizer.json or its folder");
    const data::Tokenizer tokenizer = data::Tokenizer::load(file);
    return answer_lines([&](const json& value) { return convert(tokenizer, value); });
  }
};

int run(const tessera::app::Args& args) {
  tessera::app::Flags app{"Trains and applies byte-level BPE in Hugging Face's tokenizer.json.",
                          "tokenizer"};
  app.require_subcommand();
  Train train(app);
  Convert to_ids(app, "encode", "convert strings on standard input (JSONL) to lists of ids");
  Convert to_text(app, "decode", "convert lists of ids on standard input (JSONL) to strings");
  if (!app.parse(args)) return 0;
  if (train.app.parsed()) return train.run();
  return to_ids.app.parsed() ? to_ids.run(&encode) : to_text.run(&decode);
}

const tessera::app::CommandRegistration registration{
    "tokenizer", "train a tokenizer, encode and decode text", &run};

}  // namespace
