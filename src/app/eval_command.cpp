// SPDX-License-Identifier: Apache-2.0
// tessera eval [config]: the loss over a job's validation data; eval --logits OUT --input IN
// [config]: a model's logits.
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "command.hpp"
#include "command_line.hpp"
#include "folder_job.hpp"
#include "ranks.hpp"
#include "tensor_commands.hpp"
#include "tessera/base/atomic_file.hpp"
#include "tessera/base/json.hpp"
#include "tessera/hf/safetensors.hpp"
#include "tessera/inputs/job_check.hpp"
#include "tessera/train/evaluation.hpp"
#include "tessera/train/inference.hpp"

namespace {

using tessera::DType;
using tessera::ExitCode;
using tessera::app::Args;
using tessera::train::ValidationResult;

at::Tensor read_tokens(const std::string& file) {
  const tessera::hf::SafetensorsReader reader(file);
  const auto* entry = reader.find("input_ids");
  tessera::require(entry && entry->shape.size() == 2, ExitCode::data,
                   "{} needs a tensor \"input_ids\" [batch, seq]", file);
  const at::Tensor tokens = at::empty({entry->shape[0], entry->shape[1]}, at::kLong);
  reader.read_whole("input_ids", DType::i64, tokens.data_ptr());
  return tokens;
}

void write_logits(const std::string& file, const at::Tensor& logits) {
  const at::Tensor values = logits.to(at::kFloat).contiguous();
  tessera::hf::SafetensorsWriter writer(file, {{"logits", DType::f32, values.sizes().vec()}});
  writer.write("logits", 0, values.numel(), values.data_ptr());
  writer.finish();
}

/// What would be lost, or would fail after the computation, is said before it.
void require_output(const std::string& file) {
  const auto holds_logits = [&] {
    try {
      return tessera::hf::SafetensorsReader(file).find("logits") != nullptr;
    } catch (const tessera::Error&) {
      return false;
    }
  };
  std::error_code ignored;
  const bool is_new =
      !std::filesystem::exists(file, ignored) || std::filesystem::is_empty(file, ignored);
  tessera::require(is_new || holds_logits(), ExitCode::usage,
                   "'{}' is there and holds no logits; name another file with --logits", file);
  const tessera::AtomicFile tried(file, {ExitCode::environment, "--logits"});
}

int run_logits(const std::string& input, const std::string& logits, const Args& job) {
  const tessera::config::Resolved resolved = tessera::config::resolve(job);
  require_output(logits);
  const at::Tensor tokens = read_tokens(input);
  tessera::train::Inference model(tessera::plan::plan_inference(resolved, 0), tokens.size(1),
                                  nullptr);
  write_logits(logits, model.logits(tokens));
  return 0;
}

std::string as_json(const ValidationResult& result) {
  nlohmann::ordered_json json{{"loss", result.loss},
                              {"tokens", result.tokens},
                              {"samples", result.samples},
                              {"seconds", result.seconds}};
  for (const auto& [name, loss] : result.parts) json["parts"][name] = loss;
  return tessera::json_text(json, 2) + "\n";
}

std::string as_text(const ValidationResult& result) {
  std::string text = fmt::format("loss {:.6f} over {} tokens of {} samples in {:.2f} s\n",
                                 result.loss, result.tokens, result.samples, result.seconds);
  for (const auto& [name, loss] : result.parts) text += fmt::format("  {}: {:.6f}\n", name, loss);
  return text;
}

/// Of the job, or of one with another batch where its ranks do not divide the batch of a step:
/// evaluation takes no step.
std::int64_t find_job_problems(tessera::config::Reading& job, int ranks) {
  tessera::inputs::JobCheck check(tessera::inputs::JobCheck::Files::looked_at);
  const tessera::config::Reading written = job;
  const std::int64_t vocabulary = check.find_problems(job, ranks);
  const bool divides = std::ranges::none_of(job.problems, [](const auto& problem) {
    return std::ranges::count(problem.about, "training.global_batch_size") > 0;
  });
  if (divides) return vocabulary;
  job = written;
  tessera::config::JobConfig& free = job.resolved.job;
  free.training.global_batch_size = -1;
  free.training.local_batch_size *= std::max(1, free.parallelism.pipeline_parallel_degree);
  return check.find_problems(job, ranks);
}

/// Who asks for a loss has not written that validation is on. A run of GPUs is evaluated on a host
/// too, where nothing can be registered with NCCL; no value depends on it.
std::int64_t find_problems(tessera::config::Reading& job, int ranks) {
  job.use = tessera::config::JobUse::inference;
  job.resolved.job.parallelism.fsdp_register_buffers = false;
  const std::int64_t vocabulary = find_job_problems(job, ranks);
  tessera::config::Problem no_data;
  no_data.text =
      "there is no data to evaluate on; set validation.dataset_path, or set validation.split to "
      "the share of the "
      "training data that was held out";
  for (tessera::config::Problem& problem : job.problems)
    if (problem.text.starts_with("validation.enable = true has no data")) problem = no_data;
  return vocabulary;
}

int run_loss(Args job, bool json) {
  const bool said = std::ranges::any_of(job, [](const std::string& word) {
    return word.starts_with("--validation.enable") || word.starts_with("--validation.no_enable");
  });
  if (!said) job.emplace_back("--validation.enable");  // whatever the file says: it is asked for
  const auto evaluate = [json](auto& world, const auto& job, const Args&, const auto& failed) {
    const ValidationResult result = tessera::train::evaluate(world, job.plan, failed);
    if (world.rank() == 0) std::cout << (json ? as_json(result) : as_text(result)) << std::flush;
    return ExitCode::done;
  };
  return tessera::app::run_on_ranks(job, evaluate, &find_problems);
}

int run(const Args& args) {
  std::string logits, input, config;
  bool json = false;
  tessera::app::Flags app(
      "Computes the loss over a job's validation data (section [validation]), on all ranks of the "
      "job.\n"
      "With --logits, it writes the logits of given tokens instead, in one process. The input has "
      "the\n"
      "tensor input_ids, int32 or int64 [batch, seq]. The output has the tensor logits, float32\n"
      "[batch, seq, vocab]. They are computed without document masks, and in training.dtype "
      "unless\n"
      "the command line sets training.mixed_precision_param.\n"
      "The job is [FILE or RUN] [--section.key value ...]. The weights are those of the latest "
      "valid\n"
      "checkpoint in job.dump_folder, or those that --checkpoint.initial_load_path names on the\n"
      "command line. A run without checkpoints has those of its job's initial_load_path.\n"
      "--checkpoint.load_step selects a step of the run.\n",
      "eval");
  const auto out = app.add_option("--logits", logits, "safetensors file to write");
  app.add_option("--input", input, "safetensors file to read").needs(out);
  app.add_flag("--json", json, "print the loss as JSON");
  app.add_option("config", config, "job file, the folder of a run, or a Hugging Face folder");
  auto [own, job] = tessera::app::split_job_flags(args);
  if (!app.parse(own)) return 0;
  if (!config.empty()) {
    const Args named =
        std::filesystem::is_directory(config) ? tessera::app::job_of_folder(config) : Args{config};
    job.insert(job.begin(), named.begin(), named.end());
  }
  tessera::require(logits.empty() || !input.empty(), ExitCode::usage,
                   "--logits needs --input, a file of tokens");
  std::error_code ignored;
  tessera::require(logits.empty() || !std::filesystem::equivalent(logits, input, ignored),
                   ExitCode::usage, "--logits {} would replace --input; name another file", logits);
  if (logits.empty()) return run_loss(std::move(job), json);
  tessera::app::require_one_process("eval --logits");
  return run_logits(input, logits, job);
}

const tessera::app::CommandRegistration registration{tessera::app::kEval.name,
                                                     tessera::app::kEval.summary, &run};

}  // namespace
