// SPDX-License-Identifier: Apache-2.0
// tessera generate RUN --prompt TEXT ...: text from a trained model.
#include <fmt/ranges.h>
#include <filesystem>
#include <iostream>

#include "command.hpp"
#include "command_line.hpp"
#include "folder_job.hpp"
#include "ranks.hpp"
#include "tensor_commands.hpp"
#include "tessera/base/log.hpp"
#include "tessera/base/utf8.hpp"
#include "tessera/data/tokenizer.hpp"
#include "tessera/hf/assets.hpp"
#include "tessera/train/inference.hpp"

namespace {

using tessera::ExitCode;
using tessera::app::Args;
using tessera::data::Tokenizer;

struct Options {
  std::string run;
  std::optional<std::string> prompt;
  std::vector<std::int32_t> prompt_ids;
  std::int64_t max_new_tokens = 64;
  tessera::train::Sampling sampling;
  bool print_ids = false;
  std::vector<std::string> overrides;
};

/// The job of a folder or of a configuration file; what are not flags of this command are the job's
/// own flags.
tessera::config::Resolved job_of(const Options& options) {
  Args words;
  tessera::require(options.run.empty() || std::filesystem::exists(options.run), ExitCode::usage,
                   "there is no run, Hugging Face folder or job file '{}'", options.run);
  if (!options.run.empty())
    words = std::filesystem::is_directory(options.run) ? tessera::app::job_of_folder(options.run)
                                                       : Args{options.run};
  words.insert(words.end(), options.overrides.begin(), options.overrides.end());
  return tessera::config::resolve(words);
}

std::vector<std::int32_t> prompt_of(const Options& options, const Tokenizer* tokenizer) {
  if (!options.prompt) return options.prompt_ids;
  std::vector<std::int32_t> ids = tokenizer->encode(*options.prompt);
  if (const auto bos = tokenizer->bos_id()) ids.insert(ids.begin(), *bos);
  return ids;
}

int generate(const Options& options) {
  const tessera::config::Resolved resolved = job_of(options);
  std::optional<Tokenizer> tokenizer;
  if (options.prompt || !options.print_ids)
    tokenizer = Tokenizer::load(resolved.job.model.hf_assets_path);
  const auto prompt = prompt_of(options, tokenizer ? &*tokenizer : nullptr);
  if (!options.print_ids)
    for (const std::int32_t id : prompt)
      tessera::require(tokenizer->has(id), ExitCode::data,
                       "--prompt-ids: no token of the tokenizer has the id {}; choose another one, "
                       "or add --print-ids",
                       id);
  const std::int64_t vocabulary = tokenizer ? tokenizer->vocab_size() : 0;
  tessera::train::Inference model(tessera::plan::plan_inference(resolved, vocabulary),
                                  static_cast<std::int64_t>(prompt.size()) + options.max_new_tokens,
                                  tokenizer ? &*tokenizer : nullptr);
  const tessera::config::Model& files = resolved.job.model;
  const auto stops =
      tokenizer && options.prompt
          ? tessera::hf::end_ids({files.hf_assets_path, files.hf_config.value_or("")}, *tokenizer)
          : std::vector<std::int32_t>();
  const auto ids = model.generate(prompt, options.max_new_tokens, options.sampling, stops);
  if (options.print_ids)
    std::cout << fmt::format("{}\n", fmt::join(ids, ","));
  else  // the last token may begin a character that a next one would complete
    std::cout << tessera::with_whole_characters(tokenizer->decode(prompt, true) +
                                                tokenizer->decode(ids, true))
              << "\n";
  return 0;
}

int run(const Args& args) {
  Options options;
  tessera::app::Flags app(
      "Generates text with the latest valid checkpoint of a run, or with the weights that\n"
      "--checkpoint.initial_load_path names on the command line. A run without checkpoints has\n"
      "those of its job's initial_load_path. --checkpoint.load_step selects a step of the run.\n",
      "generate");
  app.add_option("run", options.run,
                 "the run's folder (job.dump_folder), a Hugging Face folder, or a job file");
  const auto text = app.add_option("--prompt", options.prompt,
                                   "text to continue; the tokenizer's BOS token comes before it");
  app.add_option("--prompt-ids", options.prompt_ids, "token ids to continue, comma-separated")
      .delimiter(',')
      .excludes(text);
  app.add_option("--max-new-tokens", options.max_new_tokens, "tokens to generate")
      .show_default()
      .between(1, 1 << 24);
  app.add_option("--temperature", options.sampling.temperature, "0 = always the most likely token")
      .show_default()
      .at_least(0);
  const auto top_k = app.add_option("--top-k", options.sampling.top_k,
                                    "sample from the k most likely tokens; 0 = all")
                         .show_default()
                         .at_least(0);
  const auto seed = app.add_option("--seed", options.sampling.seed, "seed of the sampling")
                        .show_default()
                        .at_least(0);
  app.add_flag("--print-ids", options.print_ids, "print token ids instead of text");
  const auto [own, job] = tessera::app::split_job_flags(args);
  if (!app.parse(own)) return 0;
  tessera::app::require_one_process("generate");
  options.overrides = job;
  if (options.sampling.temperature <= 0)
    for (const auto& [flag, name] : {std::pair(top_k, "--top-k"), std::pair(seed, "--seed")})
      if (flag.given())
        tessera::log::warning("{} has no effect: --temperature is 0, always the most likely token",
                              name);
  tessera::require(options.prompt || !options.prompt_ids.empty(), ExitCode::usage,
                   "give --prompt TEXT or --prompt-ids IDS");
  return generate(options);
}

const tessera::app::CommandRegistration registration{tessera::app::kGenerate.name,
                                                     tessera::app::kGenerate.summary, &run};

}  // namespace
