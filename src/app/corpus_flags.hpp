// SPDX-License-Identifier: Apache-2.0
// The flags that say how files hold documents.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "command_line.hpp"
#include "tessera/data/text_corpus.hpp"

namespace tessera::app {

class CorpusFlags {
 public:
  void add_to(Flags& app) {
    app.add_option(
           "text", files_,
           "plain text, JSONL (.jsonl, .json), also compressed (.gz, .zst), or folders of them")
        .required();
    app.add_option("--jsonl-key", options_.jsonl_key, "key of the text in each JSON object [text]");
    const Flag rule = app.add_option(
        "--documents", rule_,
        "what is a document in plain text: file, lines, paragraphs or chapters [file]. A chapter "
        "begins with a line such as 'Genesis 1', and --unwrap joins its lines.");
    app.add_option("--split-regex", options_.split_regex,
                   "regular expression; a matching line begins a document in plain text")
        .excludes(rule);
    app.add_flag("--unwrap", options_.unwrap,
                 "join hard-wrapped lines: an unindented line continues the previous line");
  }

  data::CorpusOptions options(const std::filesystem::path& scratch) const {
    data::CorpusOptions options = options_;
    options.scratch = scratch;
    options.documents = data::document_rule_from_name(rule_);
    return options;
  }
  /// `scratch`: a folder for what compressed files hold, while they are read.
  data::TextCorpus open(const std::filesystem::path& scratch) const {
    return data::TextCorpus({files_.begin(), files_.end()}, options(scratch));
  }

 private:
  std::vector<std::string> files_;
  std::string rule_ = "file";
  data::CorpusOptions options_;
};

}  // namespace tessera::app
