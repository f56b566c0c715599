// tessera eval --logits OUT --input IN [config]: a model's logits.
#include <CLI/CLI.hpp>
#include <iostream>

#include "command_line.hpp"
#include "tessera/checkpoint/safetensors.hpp"
#include "tessera/train/inference.hpp"
#include "verb.hpp"

namespace {

using tessera::DType;
using tessera::ExitCode;
using tessera::app::Args;

torch::Tensor read_tokens(const std::string& file) {
  const tessera::checkpoint::SafetensorsReader reader(file);
  const auto* entry = reader.find("input_ids");
  tessera::require(entry && entry->shape.size() == 2, ExitCode::data, "{} needs a tensor \"input_ids\" [batch, seq]", file);
  const torch::Tensor tokens = torch::empty({entry->shape[0], entry->shape[1]}, torch::kInt64);
  reader.read_whole("input_ids", DType::i64, tokens.data_ptr());
  return tokens;
}

void write_logits(const std::string& file, const torch::Tensor& logits) {
  const torch::Tensor values = logits.to(torch::kFloat32).contiguous();
  tessera::checkpoint::SafetensorsWriter writer(file, {{"logits", DType::f32, values.sizes().vec()}});
  writer.write("logits", 0, values.numel(), values.data_ptr());
  writer.finish();
}

int run(const Args& args) {
  std::string logits, input, config;
  CLI::App app("Writes the logits [batch, seq, vocab] (float32) of the tokens in a safetensors file (input_ids, int32 or int64 [batch, seq]). "
               "The model is the job's: [FILE] [--section.key value ...], its weights those of checkpoint.initial_load_path or "
               "the newest checkpoint of job.dump_folder.",
               "tessera eval");
  app.add_option("--logits", logits, "safetensors file to write")->required();
  app.add_option("--input", input, "safetensors file to read")->required();
  app.add_option("config", config, "configuration file");
  auto [own, job] = tessera::app::split_job_flags(args);
  if (!tessera::app::parse(app, own)) return 0;
  if (!config.empty()) job.insert(job.begin(), config);
  const tessera::config::Resolved resolved = tessera::config::resolve(job);
  const torch::Tensor tokens = read_tokens(input);
  tessera::train::Inference model(resolved, tokens.size(1), 0);
  write_logits(logits, model.logits(tokens));
  return 0;
}

const tessera::app::VerbRegistration registration{"eval", "a model's logits on given tokens", &run};

}  // namespace
