// SPDX-License-Identifier: Apache-2.0
#include "data_inspect.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "command_line.hpp"
#include "tessera/base/json.hpp"
#include "tessera/base/log.hpp"
#include "tessera/comm/communicator.hpp"
#include "tessera/config/resolve.hpp"
#include "tessera/data/document_lengths.hpp"
#include "tessera/data/tokenizer.hpp"
#include "tessera/inputs/samples.hpp"
#include "tessera/plan/job_plan.hpp"

namespace tessera::app {
namespace {

using Json = nlohmann::ordered_json;
using Ids = std::vector<std::int32_t>;

Json id_or_null(std::optional<int> id) { return id ? Json(*id) : Json(); }

/// Of a file: its header, lengths of documents, first tokens.
Json facts_of(const data::TokenFile& file, std::int64_t tokens,
              const std::optional<data::Tokenizer>& tokenizer) {
  const data::TokenFileInfo& info = file.info();
  Json facts{{"file", file.path().string()},
             {"tokens", info.token_count},
             {"documents", info.document_count},
             {"vocab_size", info.vocab_size},
             {"token_bytes", info.token_bytes},
             {"bos_id", id_or_null(info.bos_id)},
             {"eos_id", id_or_null(info.eos_id)},
             {"seed", info.seed},
             {"tokenizer_hash", fmt::format("{:016x}", info.tokenizer_hash)},
             {"source_hash", fmt::format("{:016x}", info.source_hash)},
             {"document_lengths", Json::array()}};
  for (const data::LengthClass& of : data::document_lengths(file))
    facts["document_lengths"].push_back({{"least", of.least},
                                         {"most", of.most},
                                         {"documents", of.documents},
                                         {"tokens", of.tokens}});
  Ids first(static_cast<std::size_t>(std::min(tokens, info.token_count)));
  file.read(0, first);
  facts["first_tokens"] = first;
  if (tokenizer) facts["first_text"] = tokenizer->decode(first);
  return facts;
}

Json facts_of(const data::SampleSource& source, std::int64_t sample, std::int64_t tokens,
              const std::optional<data::Tokenizer>& tokenizer) {
  Ids inputs(static_cast<std::size_t>(source.seq_len())), labels(inputs.size());
  source.read(sample, inputs, labels);
  Json facts{{"sample", sample}};
  if (const auto origin = source.origin(sample)) {
    if (!origin->source.empty()) facts["source"] = origin->source;
    facts["sample_of_source"] = origin->sample;
    facts["epoch"] = origin->epoch;
    facts["window"] = origin->window;
    facts["file"] = origin->file.string();
    facts["first_token"] = origin->first_token;
    facts["documents_begin_at"] = source.document_starts(sample);
  }
  facts["ignored_labels"] = std::ranges::count(labels, -100);
  inputs.resize(std::min(inputs.size(), static_cast<std::size_t>(tokens)));
  facts["tokens"] = inputs;
  if (tokenizer) facts["text"] = tokenizer->decode(inputs);
  return facts;
}

std::string value_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.is_null() ? "none" : json_text(value);
  std::string text;
  for (const Json& entry : value) text += (text.empty() ? "" : " ") + json_text(entry);
  return text;
}

std::string lengths_text(const Json& classes, std::int64_t all) {
  std::string text = fmt::format("{:<20}{:>22} {:>12} {:>14} {:>7}\n", "document lengths",
                                 "tokens each", "documents", "tokens", "share");
  for (const Json& of : classes) {
    const auto least = of["least"].get<std::int64_t>(), most = of["most"].get<std::int64_t>(),
               tokens = of["tokens"].get<std::int64_t>();
    const std::string each =
        least == most ? std::to_string(least) : fmt::format("{} to {}", least, most);
    text += fmt::format(
        "{:<20}{:>22} {:>12} {:>14} {:>5.1f} %\n", "", each, of["documents"].get<std::int64_t>(),
        tokens,
        100.0 * static_cast<double>(tokens) / static_cast<double>(std::max<std::int64_t>(1, all)));
  }
  return text;
}

/// A line for each fact; text in quotes, as JSON writes it, so that line ends and control
/// characters show.
std::string as_text(const Json& facts) {
  std::string text;
  for (const auto& [name, value] : facts.items()) {
    std::string label = name;
    std::ranges::replace(label, '_', ' ');
    if (name == "document_lengths")
      text += lengths_text(value, facts["tokens"].get<std::int64_t>());
    else if (name == "text" || name == "first_text")
      text += fmt::format("{:<20}{}\n", label, json_text(value));
    else
      text += fmt::format("{:<20}{}\n", label, value_text(value));
  }
  return text;
}

std::string as_json(const Json& facts) { return json_text(facts, 2) + "\n"; }

std::optional<data::Tokenizer> load_if_named(const std::string& path) {
  if (path.empty()) return std::nullopt;
  return data::Tokenizer::load(path);
}

/// A job names its tokenizer; token files do without, so it need not be there.
std::string tokenizer_of(const config::JobConfig& job) {
  const std::string& named = job.model.hf_assets_path;
  std::error_code ignored;
  return std::filesystem::exists(data::tokenizer_file(named), ignored) ? named : "";
}

}  // namespace

DataInspect::DataInspect(Flags& parent)
    : app_(parent.add_subcommand("inspect",
                                 "show the contents of a token file, or samples of a job")) {
  app_.add_option("file", file_, "token file; with --sample, a job file");
  app_.add_option("--sample", samples_,
                  "numbers of the samples to show, of the job [FILE] [--section.key value ...]");
  app_.add_option("--tokenizer", tokenizer_,
                  "tokenizer.json or its folder, to show the text [that of the job]");
  app_.add_option("--tokens", tokens_, "number of tokens to show [16]").between(0, 1 << 24);
  app_.add_flag("--quick", quick_, "do not compare the file with its hash");
  app_.add_flag("--json", json_, "print JSON");
}

int DataInspect::run(const Args& job_flags) const {
  if (!samples_.empty()) return inspect_samples(job_flags);
  require(!file_.empty(), ExitCode::usage,
          "name a token file, or --sample and a job file; see `tessera help data inspect`");
  require(job_flags.empty(), ExitCode::usage, "{} is a key of a job; it needs --sample",
          job_flags.empty() ? "" : job_flags.front());
  return inspect_file();
}

int DataInspect::inspect_file() const {
  require(!file_.ends_with(".toml"), ExitCode::usage,
          "'{}' is a job: --sample N shows one of its samples", file_);
  const data::TokenFile file = data::TokenFile::open(file_);
  if (!quick_) file.verify(json_ ? data::Progress() : data::terminal_progress("data inspect"));
  const std::optional<data::Tokenizer> tokenizer = load_if_named(tokenizer_);
  if (tokenizer && tokenizer->content_hash() != file.info().tokenizer_hash)
    log::warning("'{}' was made with another tokenizer than '{}': its text was another one", file_,
                 tokenizer_);
  Json facts = facts_of(file, tokens_, tokenizer);
  facts["content"] = quick_ ? "not checked" : "hash OK";
  std::cout << (json_ ? as_json(facts) : as_text(facts));
  return 0;
}

int DataInspect::inspect_samples(const Args& job_flags) const {
  Args words = job_flags;
  if (!file_.empty()) words.insert(words.begin(), file_);
  const config::Resolved resolved = config::resolve(words);
  const config::JobConfig& job = resolved.job;
  // 0: all that a replay file has
  const std::int64_t batch = std::max<std::int64_t>(0, job.training.global_batch_size);
  const auto alone = comm::make_self_communicator("data inspect");
  const inputs::Samples samples = inputs::open_samples(plan::plan_data(resolved), batch, *alone);
  const auto tokenizer = load_if_named(tokenizer_.empty() ? tokenizer_of(job) : tokenizer_);
  Json all = Json::array();
  for (const std::int64_t sample : samples_) {
    require(sample >= 0, ExitCode::usage, "samples are numbered from 0; there is no sample {}",
            sample);
    all.push_back(facts_of(*samples.source, sample, tokens_, tokenizer));
  }
  if (json_) {
    std::cout << as_json(all);
    return 0;
  }
  for (const Json& facts : all) std::cout << as_text(facts) << '\n';
  return 0;
}

}  // namespace tessera::app
