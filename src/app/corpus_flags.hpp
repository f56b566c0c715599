// SPDX-License-Identifier: Apache-2.0
// The flags that say how files hold documents.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "command_line.hpp"
#include "tessera/base/log.hpp"
#include "tessera/data/text_corpus.hpp"

namespace tessera::app {

class CorpusFlags {
 public:
  void add_to(Flags& app) {
    app.add_option(
           "text", files_,
           "plain text, JSONL (.jsonl, .json), also compressed (.gz, .zst), or folders of them")
        .required();
    const Flag key = app.add_option("--jsonl-key", options_.jsonl_key,
                                    "key of the text in each JSON object [text]");
    const Flag rule = app.add_option(
        "--documents", rule_,
        "what is a document in plain text: file, lines, paragraphs or chapters [file]. A chapter "
        "begins with a line such as 'Genesis 1', and --unwrap joins its lines.");
    const Flag regex =
        app.add_option("--split-regex", options_.split_regex,
                       "regular expression; a matching line begins a document in plain text")
            .excludes(rule);
    const Flag unwrap =
        app.add_flag("--unwrap", options_.unwrap,
                     "join hard-wrapped lines: an unindented line continues the previous line");
    of_jsonl_ = {{"--jsonl-key", key}};
    of_plain_text_ = {{"--documents", rule}, {"--split-regex", regex}, {"--unwrap", unwrap}};
  }

  data::CorpusOptions options(const std::filesystem::path& scratch) const {
    data::CorpusOptions options = options_;
    options.scratch = scratch;
    options.documents = data::document_rule_from_name(rule_);
    return options;
  }
  /// `scratch`: a folder for what compressed files hold, while they are read.
  data::TextCorpus open(const std::filesystem::path& scratch) const {
    data::TextCorpus corpus({files_.begin(), files_.end()}, options(scratch));
    if (!corpus.has_jsonl()) warn_of(of_jsonl_, "no file is JSONL");
    if (!corpus.has_plain_text()) warn_of(of_plain_text_, "all files are JSONL");
    return corpus;
  }

 private:
  using NamedFlags = std::vector<std::pair<const char*, Flag>>;

  static void warn_of(const NamedFlags& flags, const char* why) {
    for (const auto& [name, flag] : flags)
      if (flag.given()) log::warning("{} has no effect: {}", name, why);
  }

  std::vector<std::string> files_;
  std::string rule_ = "file";
  NamedFlags of_jsonl_, of_plain_text_;
  data::CorpusOptions options_;
};

}  // namespace tessera::app
