// SPDX-License-Identifier: Apache-2.0
#include "tessera/inputs/samples.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include "readers.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"
#include "tessera/comm/agreement.hpp"
#include "tessera/comm/world.hpp"
#include "tessera/data/data_files.hpp"
#include "tessera/data/mixture_source.hpp"
#include "tessera/data/prepare.hpp"
#include "tessera/data/progress.hpp"
#include "tessera/data/window_source.hpp"

namespace tessera::inputs {
namespace {

namespace fs = std::filesystem;
using data::WindowSource;

/// Data of one kind at one path.
struct Named {
  config::DataKind kind;
  fs::path path;
};

/// The token files at the path: those there, or one that is made of the text there.
std::vector<fs::path> token_files(const plan::DataPlan& plan, const Named& source) {
  const fs::path& path = source.path;
  const std::vector<fs::path> files = data::data_files(path);
  if (data::TokenFile::is_token_file(files.front())) return files;
  require_text_is_read(source.kind, files.front());
  const data::Tokenizer tokenizer = data::Tokenizer::load(plan.tokenizer);
  log::info("reading {} with the tokenizer in {}", path.string(), plan.tokenizer.string());
  std::error_code problem;
  const bool pattern = !fs::exists(path, problem);
  return {data::prepare_if_needed(pattern ? files : std::vector{path}, tokenizer,
                                  plan.tokens_folder, {},
                                  data::terminal_progress("reading " + path.string()))};
}

void tell_size(const fs::path& path, const std::vector<data::TokenFile>& files) {
  std::int64_t tokens = 0, documents = 0;
  for (const data::TokenFile& file : files) {
    tokens += file.info().token_count;
    documents += file.info().document_count;
  }
  log::info("{}: {} tokens in {} document(s) of {} token file(s)", path.string(), tokens, documents,
            files.size());
}

constexpr std::chrono::hours kTokenizing{24};  ///< the others wait for rank 0 to read a text

/// Opens a source on all ranks once rank 0 has seen to its token files.
std::vector<data::TokenFile> open_files(const plan::DataPlan& plan, const Named& source,
                                        comm::Communicator& control) {
  std::string names;
  {
    const comm::Watchdog::Patience patience(kTokenizing);
    names = comm::on_rank_zero(control, [&] {
      std::string all;
      for (const fs::path& file : token_files(plan, source)) all += file.string() + '\0';
      return all;
    });
  }
  std::vector<fs::path> files;
  for (std::size_t end; (end = names.find('\0')) != std::string::npos; names.erase(0, end + 1))
    files.emplace_back(names.substr(0, end));
  std::vector<data::TokenFile> opened;
  comm::on_all_ranks(control, [&] { opened = data::open_token_files(files); });
  if (control.rank() == 0) tell_size(source.path, opened);
  return opened;
}

/// A source of training data with its files.
struct Opened {
  config::MixtureEntry entry;
  std::vector<data::TokenFile> files;
};

std::vector<Opened> open_sources(const plan::DataPlan& plan, comm::Communicator& control) {
  std::vector<Opened> sources;
  for (const config::MixtureEntry& entry : plan.sources)
    sources.push_back({entry, open_files(plan, {plan.dataset.kind, entry.path}, control)});
  return sources;
}

std::unique_ptr<data::SampleSource> one_or_mixed(std::vector<data::MixtureSource::Part> parts,
                                                 std::uint64_t seed) {
  if (parts.size() == 1) return std::move(parts.front().source);
  return std::make_unique<data::MixtureSource>(std::move(parts), seed);
}

/// Windows of the sources: training's, and those that are held out for validation.
void make_windows(const plan::DataPlan& plan, const std::vector<Opened>& sources,
                  Samples& samples) {
  const std::uint64_t seed = plan.seed;
  std::vector<data::MixtureSource::Part> training, held_out;
  for (const auto& [entry, files] : sources) {
    data::check_same_tokenizer(sources.front().files.front(), files.front());
    data::HeldOut parts = data::hold_out(files, plan.seq_len, plan.held_out);
    const std::uint64_t own =
        sources.size() == 1 ? seed : data::MixtureSource::part_seed(seed, entry.name);
    auto windows = std::make_unique<WindowSource>(std::move(parts.training), plan.seq_len, own);
    const std::int64_t epoch = windows->window_count();
    training.push_back({entry.name, std::move(windows), entry.weight, epoch});
    if (!plan.validation || parts.held_out.empty()) continue;
    windows = std::make_unique<WindowSource>(std::move(parts.held_out), plan.validation->seq_len, 0,
                                             WindowSource::Order::as_they_come);
    held_out.push_back({entry.name, std::move(windows), 1, 1});
  }
  samples.vocab = sources.front().files.front().info().vocab_size;
  samples.source = one_or_mixed(std::move(training), seed);
  if (!held_out.empty()) samples.validation = one_or_mixed(std::move(held_out), 0);
}

std::unique_ptr<data::SampleSource> open_validation(const plan::DataPlan& plan,
                                                    const data::TokenFile* trained_on,
                                                    comm::Communicator& control) {
  const plan::ValidationPlan& validation = *plan.validation;
  const Named named{validation.dataset.kind, *validation.path};
  std::unique_ptr<data::SampleSource> source;
  if (!validation.dataset.windows) {
    comm::on_all_ranks(control, [&] {
      source = open_reader(named.kind, named.path, {validation.seq_len, 0, marks_documents(plan)});
    });
    return source;
  }
  const std::vector<data::TokenFile> files = open_files(plan, named, control);
  comm::on_all_ranks(control, [&] {
    if (trained_on) data::check_same_tokenizer(*trained_on, files.front());
    source =
        std::make_unique<WindowSource>(data::hold_out(files, validation.seq_len, 0).training,
                                       validation.seq_len, 0, WindowSource::Order::as_they_come);
  });
  return source;
}

}  // namespace

void require_samples(const data::SampleSource& source, std::int64_t steps,
                     std::int64_t global_batch, const Trained& before) {
  const auto limit = source.sample_limit();
  const std::int64_t needed = before.samples + (steps - before.steps) * global_batch,
                     left = limit.value_or(0) - before.samples;
  require(!limit || needed <= *limit, ExitCode::data,
          "training.steps = {} needs {} samples, and training.dataset_path has {}; set "
          "training.steps to at most {}, or name more data",
          steps, needed, limit.value_or(0),
          before.steps + std::max<std::int64_t>(0, left) / global_batch);
}

Samples open_samples(const plan::DataPlan& plan, std::int64_t global_batch,
                     comm::Communicator& control) {
  Samples samples;
  std::vector<Opened> sources;
  if (!plan.dataset.windows) {
    comm::on_all_ranks(control, [&] {
      samples.source = open_reader(plan.dataset.kind, plan.sources.front().path,
                                   {plan.seq_len, global_batch, marks_documents(plan)});
    });
  } else {
    sources = open_sources(plan, control);
    comm::on_all_ranks(control, [&] { make_windows(plan, sources, samples); });
  }
  if (plan.validation && plan.validation->path)
    samples.validation =
        open_validation(plan, sources.empty() ? nullptr : &sources.front().files.front(), control);
  return samples;
}

Samples open_validation_samples(const plan::DataPlan& plan, comm::Communicator& control) {
  Samples samples;
  samples.validation = open_validation(plan, nullptr, control);
  return samples;
}

}  // namespace tessera::inputs
