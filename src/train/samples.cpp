#include "samples.hpp"

#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"
#include "tessera/data/prepare.hpp"
#include "tessera/data/token_file.hpp"
#include "tessera/data/tokenizer.hpp"
#include "tessera/train/collective.hpp"
#include "tessera/train/replay_source.hpp"

namespace tessera::train {
namespace {

namespace fs = std::filesystem;

/// The token file that the job reads: the path itself, or one that is made of the text there.
fs::path token_file(const config::JobConfig& job, const fs::path& path) {
  if (data::TokenFile::is_token_file(path)) return path;
  const data::Tokenizer tokenizer = data::Tokenizer::load(job.model.hf_assets_path);
  const fs::path cache = job.training.tokens_cache ? fs::path(*job.training.tokens_cache) : fs::path(job.job.dump_folder) / "tokens";
  log::info("reading {} with the tokenizer in {}", path.string(), job.model.hf_assets_path);
  return data::prepare_if_needed(path, tokenizer, cache);
}

}  // namespace

Samples open_job_samples(const config::JobConfig& job, const BatchPlan& plan, comm::Communicator& control) {
  const config::Training& training = job.training;
  require(training.dataset_path.has_value(), ExitCode::usage,
          "training.dataset = \"{}\" needs training.dataset_path: a text, JSONL, token or replay file (nothing is downloaded)", training.dataset);
  const fs::path path = *training.dataset_path;
  Samples samples;
  if (training.dataset == "replay") {
    on_all_ranks(control, [&] { samples.source = std::make_unique<ReplaySource>(path, plan.global_batch, training.seq_len); });
    return samples;
  }
  const fs::path file = on_rank_zero(control, [&] { return token_file(job, path).string(); });
  on_all_ranks(control, [&] {
    samples.vocab = data::TokenFile::open(file).info().vocab_size;
    samples.source = data::open_samples(file, training.seq_len, static_cast<std::uint64_t>(job.debug.seed));
  });
  return samples;
}

}  // namespace tessera::train
