// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/samples.hpp"

#include <chrono>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"
#include "tessera/comm/agreement.hpp"
#include "tessera/comm/world.hpp"
#include "tessera/config/mixture.hpp"
#include "tessera/data/data_files.hpp"
#include "tessera/data/mixture_source.hpp"
#include "tessera/data/prepare.hpp"
#include "tessera/data/window_source.hpp"
#include "tessera/metrics/run_folder.hpp"
#include "tessera/train/batch_plan.hpp"
#include "tessera/train/replay_source.hpp"

namespace tessera::train {
namespace {

namespace fs = std::filesystem;
using data::WindowSource;

/// What a source of data is called in a job.
struct Named {
  std::string dataset;  ///< training.dataset, or validation's
  fs::path path;
};

/// Where token files that are made of text lie. The points of a sweep share them: most of them read
/// the same text.
fs::path tokens_folder(const config::JobConfig& job) {
  if (job.training.tokens_cache) return *job.training.tokens_cache;
  const fs::path run = job.job.dump_folder, sweep = run.parent_path();
  return (metrics::is_sweep_folder(sweep) ? sweep : run) / "tokens";
}

/// The token files at the path: those there, or one that is made of the text there.
std::vector<fs::path> token_files(const config::JobConfig& job, const Named& source) {
  const fs::path& path = source.path;
  const std::vector<fs::path> files = data::data_files(path);
  if (data::TokenFile::is_token_file(files.front())) return files;
  require(
      source.dataset != "tokens", ExitCode::data,
      "'{}' is not a token file; make one with `tessera data prepare`, or set dataset = \"text\"",
      files.front().string());
  const data::Tokenizer tokenizer = data::Tokenizer::load(job.model.hf_assets_path);
  log::info("reading {} with the tokenizer in {}", path.string(), job.model.hf_assets_path);
  std::error_code problem;
  const bool pattern = !fs::exists(path, problem);
  return {
      data::prepare_if_needed(pattern ? files : std::vector{path}, tokenizer, tokens_folder(job))};
}

constexpr std::chrono::hours kTokenizing{24};  ///< the others wait for rank 0 to read a text

/// Opens a source on all ranks once rank 0 has seen to its token files.
std::vector<data::TokenFile> open_files(const config::JobConfig& job, const Named& source,
                                        comm::Communicator& control) {
  std::string names;
  {
    const comm::Watchdog::Patience patience(kTokenizing);
    names = comm::on_rank_zero(control, [&] {
      std::string all;
      for (const fs::path& file : token_files(job, source)) all += file.string() + '\0';
      return all;
    });
  }
  std::vector<fs::path> files;
  for (std::size_t end; (end = names.find('\0')) != std::string::npos; names.erase(0, end + 1))
    files.emplace_back(names.substr(0, end));
  std::vector<data::TokenFile> opened;
  comm::on_all_ranks(control, [&] { opened = data::open_token_files(files); });
  return opened;
}

/// A source of training data with its files.
struct Opened {
  config::MixtureEntry entry;
  std::vector<data::TokenFile> files;
};

std::vector<Opened> open_sources(const config::JobConfig& job, comm::Communicator& control) {
  std::vector<Opened> sources;
  for (const config::Strings& row : job.training.mixture)
    sources.push_back({config::mixture_entry(row).value(), {}});
  if (sources.empty()) sources.push_back({{*job.training.dataset_path, 1, ""}, {}});
  for (Opened& source : sources)
    source.files = open_files(job, {job.training.dataset, source.entry.path}, control);
  return sources;
}

std::unique_ptr<data::SampleSource> one_or_mixed(std::vector<data::MixtureSource::Part> parts,
                                                 std::uint64_t seed) {
  if (parts.size() == 1) return std::move(parts.front().source);
  return std::make_unique<data::MixtureSource>(std::move(parts), seed);
}

/// Windows of the sources: training's, and those that are held out for validation.
void make_windows(const config::JobConfig& job, const std::vector<Opened>& sources,
                  Samples& samples) {
  const auto seed = static_cast<std::uint64_t>(job.debug.seed);
  const config::Validation& validation = job.validation;
  std::vector<data::MixtureSource::Part> training, held_out;
  for (const auto& [entry, files] : sources) {
    data::check_same_tokenizer(sources.front().files.front(), files.front());
    data::HeldOut parts = data::hold_out(files, job.training.seq_len, validation.split);
    const std::uint64_t own =
        sources.size() == 1 ? seed : data::MixtureSource::part_seed(seed, entry.name);
    auto windows =
        std::make_unique<WindowSource>(std::move(parts.training), job.training.seq_len, own);
    const std::int64_t epoch = windows->window_count();
    training.push_back({entry.name, std::move(windows), entry.weight, epoch});
    if (!validation.enable || parts.held_out.empty()) continue;
    windows = std::make_unique<WindowSource>(std::move(parts.held_out), validation.seq_len, 0,
                                             WindowSource::Order::as_they_come);
    held_out.push_back({entry.name, std::move(windows), 1, 1});
  }
  samples.vocab = sources.front().files.front().info().vocab_size;
  samples.source = one_or_mixed(std::move(training), seed);
  if (!held_out.empty()) samples.validation = one_or_mixed(std::move(held_out), 0);
}

std::unique_ptr<data::SampleSource> open_replay(const config::JobConfig& job, const fs::path& file,
                                                std::int64_t global_batch, std::int64_t seq_len) {
  auto source = std::make_unique<ReplaySource>(file, global_batch, seq_len);
  require(!masks_documents(job) || job.training.document_end_id || source->knows_documents(),
          ExitCode::usage,
          "documents are masked, and {} does not mark them; give it a tensor \"documents\", or set "
          "training.document_end_id to the token that ends one",
          file.string());
  return source;
}

std::unique_ptr<data::SampleSource> open_validation(const config::JobConfig& job,
                                                    const data::TokenFile* trained_on,
                                                    comm::Communicator& control) {
  const config::Validation& validation = job.validation;
  const fs::path path = *validation.dataset_path;
  std::unique_ptr<data::SampleSource> source;
  if (validation.dataset == "replay") {
    comm::on_all_ranks(control, [&] { source = open_replay(job, path, 0, validation.seq_len); });
    return source;
  }
  const std::vector<data::TokenFile> files = open_files(job, {validation.dataset, path}, control);
  comm::on_all_ranks(control, [&] {
    if (trained_on) data::check_same_tokenizer(*trained_on, files.front());
    source =
        std::make_unique<WindowSource>(data::hold_out(files, validation.seq_len, 0).training,
                                       validation.seq_len, 0, WindowSource::Order::as_they_come);
  });
  return source;
}

}  // namespace

Samples open_job_samples(const config::JobConfig& job, std::int64_t global_batch,
                         comm::Communicator& control) {
  const config::Training& training = job.training;
  require(training.dataset_path || !training.mixture.empty(), ExitCode::usage,
          "training.dataset = \"{}\" needs training.dataset_path: a text, JSONL, token or replay "
          "file (nothing is "
          "downloaded)",
          training.dataset);
  Samples samples;
  std::vector<Opened> sources;
  if (training.dataset == "replay") {
    comm::on_all_ranks(control, [&] {
      samples.source = open_replay(job, *training.dataset_path, global_batch, training.seq_len);
    });
  } else {
    sources = open_sources(job, control);
    comm::on_all_ranks(control, [&] { make_windows(job, sources, samples); });
  }
  if (job.validation.enable && job.validation.dataset_path)
    samples.validation =
        open_validation(job, sources.empty() ? nullptr : &sources.front().files.front(), control);
  return samples;
}

}  // namespace tessera::train
