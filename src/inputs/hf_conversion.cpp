// SPDX-License-Identifier: Apache-2.0
#include "tessera/inputs/hf_conversion.hpp"

#include <unistd.h>

#include <algorithm>

#include "tessera/base/atomic_file.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"
#include "tessera/base/text_file.hpp"
#include "tessera/checkpoint/checkpoint_reader.hpp"
#include "tessera/checkpoint/inspect.hpp"
#include "tessera/config/resolve.hpp"
#include "tessera/data/tokenizer_record.hpp"
#include "tessera/hf/config.hpp"
#include "tessera/hf/export.hpp"
#include "tessera/hf/folder.hpp"
#include "tessera/hf/import.hpp"
#include "tessera/plan/model_shape.hpp"

namespace tessera::inputs {
namespace {

namespace fs = std::filesystem;

config::Resolved job_by(const fs::path& config) {
  return config::resolve({"--model.hf_config", config.string()});
}

/// The job that describes the model: the one that was given, or that of a config.json.
config::Resolved job_of(const fs::path& weights, const ImportOptions& options) {
  if (!options.config.empty()) return config::resolve(options.config);
  const fs::path config = hf::config_beside(fs::absolute(weights));
  require(fs::exists(config), ExitCode::data,
          "{} is not there: name a job with --config whose model.name and flavor, or "
          "model.hf_config, are those of the weights",
          config.string());
  return job_by(config);
}

/// The same with a config.json that stays next to the checkpoint.
config::Resolved job_to_keep(const fs::path& weights, const ImportOptions& options) {
  if (!options.config.empty()) return config::resolve(options.config);
  const fs::path config = hf::config_beside(fs::absolute(weights)),
                 kept = fs::absolute(options.folder) / "config.json";
  fs::create_directories(kept.parent_path());
  require(!fs::exists(kept) || read_text(kept) == read_text(config), ExitCode::usage,
          "{} is there and differs from that of the weights; choose another folder", kept.string());
  if (!fs::exists(kept)) fs::copy_file(config, kept);
  return job_by(kept);
}

checkpoint::CheckpointReader open_at(comm::Communicator& control, const fs::path& folder) {
  if (checkpoint::is_step_folder(folder)) return checkpoint::open(control, folder);
  auto opened = checkpoint::open_newest(control, folder, {});
  require(opened.has_value(), ExitCode::checkpoint, "{} holds no checkpoint", folder.string());
  return std::move(*opened);
}

fs::path temporary_folder() {
  std::error_code problem;
  fs::path folder = fs::temp_directory_path(problem);
  require(!problem, ExitCode::environment,
          "the folder for temporary files cannot be used ({}); set TMPDIR to another one",
          problem.message());
  return folder;
}

/// The job that made the checkpoint, from the configuration that it carries.
config::Resolved job_inside(const checkpoint::CheckpointReader& opened) {
  const fs::path file =
      temporary_folder() / fmt::format("tessera-{}-{}.toml", getpid(), opened.uuid());
  write_file_atomically(file, opened.config_toml(), {ExitCode::environment, "TMPDIR"});
  try {
    config::Resolved resolved = config::resolve({file.string()});
    fs::remove(file);
    return resolved;
  } catch (...) {
    fs::remove(file);
    throw;
  }
}

/// An import that was moved finds its config.json beside it.
config::JobConfig model_job(const checkpoint::CheckpointReader& opened) {
  config::JobConfig job = job_inside(opened).job;
  const fs::path beside = hf::config_beside(fs::canonical(opened.folder()).parent_path());
  if (job.model.hf_config && !fs::exists(*job.model.hf_config) && fs::exists(beside))
    job.model.hf_config = beside;
  return job;
}

std::int64_t vocabulary_of(const checkpoint::CheckpointReader& opened) {
  const std::string name = fmt::format("model/{}", model::kTokenEmbedding);
  const TensorInfo* embedding = opened.find(name);
  require(embedding && embedding->shape.size() == 2, ExitCode::checkpoint,
          "{} holds no table {}: it is not that of a model", opened.description(), name);
  return embedding->shape[0];
}

}  // namespace

model::DecoderShape shape_for_others(model::DecoderShape shape, const config::JobConfig& job,
                                     std::int64_t step) {
  if (step > 0) shape.max_positions = std::max(shape.max_positions, job.training.seq_len);
  shape.settle_yarn(job.training.seq_len);
  return shape;
}

fs::path import_weights(const fs::path& weights, const ImportOptions& options) {
  require(fs::exists(weights), ExitCode::data, "there is no file or folder '{}'; check the path",
          weights.string());
  // Before a config.json is put next to a checkpoint that was made with another one.
  require(checkpoint::list_steps(options.folder).empty(), ExitCode::usage,
          "{} has checkpoints already; choose another folder", options.folder.string());
  const hf::WeightFiles files(weights);
  const config::JobConfig job = job_of(weights, options).job;
  const model::DecoderShape shape = plan::decoder_shape_of(job, hf::vocabulary_rows(files));
  const std::string differences =
      options.config.empty()
          ? ""
          : hf::described_differences(model::properties_for_others(shape, job.training.seq_len),
                                      weights);
  if (!differences.empty())
    log::warning("the weights in {} are those of another model: {}", weights.string(), differences);
  const hf::Import import(files, shape, options.dtype);
  return import.write({options.folder, options.files},
                      job_to_keep(weights, options).with_absolute_paths().to_toml());
}

Exported export_hf(const fs::path& folder, const fs::path& out, const ExportOptions& options) {
  const auto control = comm::make_self_communicator("export");
  const checkpoint::CheckpointReader opened = open_at(*control, folder);
  const config::JobConfig job = model_job(opened);
  const std::int64_t vocab = vocabulary_of(opened);
  model::DecoderShape shape = plan::decoder_shape_of(job, vocab);
  const std::string differences =
      model::differences(model::properties_of(shape), model::properties_in(opened.extra()));
  require(differences.empty(), ExitCode::usage, "{} holds another model than {} now is: {}; {}",
          opened.folder().string(), job.model.hf_config.value_or("the flavor of its job"),
          differences,
          job.model.hf_config ? "restore that file"
                              : "export it with the release of Tessera that saved it");
  shape = shape_for_others(std::move(shape), job, opened.step());
  hf::require_exportable(shape);
  const hf::Assets assets =
      hf::find_assets({options.tokenizer, job.model.hf_assets_path, out,
                       data::recorded_tokenizer(opened.extra()), job.model.hf_config},
                      vocab);
  if (shape.latent && shape.latent->norm_eps != hf::kLatentEps)
    log::warning(
        "transformers computes the norms of latents with an epsilon of {}, and this model has {}: "
        "results differ slightly",
        hf::kLatentEps, shape.latent->norm_eps);
  hf::prepare_folder(out, assets, options.replace);
  hf::export_weights(opened, model::spec_of(shape), options.dtype, hf::weights_in(out));
  hf::write_texts(out, shape, options.dtype, assets);
  return {opened.step(), static_cast<std::int64_t>(fs::file_size(hf::weights_in(out))),
          assets.tokenizer, assets.why_not};
}

}  // namespace tessera::inputs
