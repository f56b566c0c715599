// SPDX-License-Identifier: Apache-2.0
#include "named_files.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>

#include "readers.hpp"
#include "tessera/base/error.hpp"
#include "tessera/checkpoint/inspect.hpp"
#include "tessera/config/mixture.hpp"
#include "tessera/data/data_files.hpp"
#include "tessera/data/tokenizer.hpp"
#include "tessera/data/window_source.hpp"
#include "tessera/inputs/found_weights.hpp"
#include "tessera/plan/checkpoint_plan.hpp"
#include "text_check.hpp"

namespace tessera::inputs {
namespace {

namespace fs = std::filesystem;

class NamedFiles {
 public:
  NamedFiles(config::Reading& reading, FoundInFiles& found)
      : reading_(reading), job_(reading.resolved.job), found_(found) {}

  std::int64_t check(bool reads) {
    const config::Training& t = job_.training;
    const config::Validation& v = job_.validation;
    const Windows trained{understood({"training.seq_len"}, t.seq_len), v.split};
    const Windows validated{understood({"validation.seq_len", "training.seq_len"}, v.seq_len), 0};
    constexpr std::string_view kDataset = "training.dataset";
    const config::Dataset& trained_on = config::dataset_of(t.dataset);
    if (reading_.reads_training_data()) {
      if (t.dataset_path)
        source({"training.dataset_path", kDataset}, trained_on, *t.dataset_path, trained);
      for (const config::Strings& row : t.mixture)
        if (const auto entry = config::mixture_entry(row))
          source({"training.mixture", kDataset}, trained_on, entry->path, trained);
    }
    if (v.enable && v.dataset_path)
      source({"validation.dataset_path", "validation.dataset"}, config::dataset_of(v.dataset),
             *v.dataset_path, validated);
    if (reads_text_) tokenizer();
    if (reads) texts();
    weights();
    if (vocabulary_ == 0 && !reading_.reads_training_data()) take_usual_vocabulary();
    return vocabulary_;
  }

 private:
  using Keys = std::initializer_list<std::string_view>;

  /// A source that a run makes tokens of.
  struct Text {
    std::string_view key, dataset;  ///< keys that name it
    std::string path;
    Windows windows;
  };

  std::optional<std::int64_t> understood(Keys keys, std::int64_t value) const {
    return reading_.understood(keys) ? std::optional(value) : std::nullopt;
  }

  void obey(Keys keys, const std::function<void()>& rule) { reading_.obey(keys, rule); }

  /// What `look` finds for `name`, or finds wrong with it, once for all jobs.
  std::int64_t remembered(const std::string& name, const std::function<std::int64_t()>& look) {
    auto known = found_.find(name);
    if (known == found_.end()) {
      try {
        known = found_.emplace(name, look()).first;
      } catch (const Error& error) {
        known = found_.emplace(name, error).first;
      }
    }
    if (const Error* wrong = std::get_if<Error>(&known->second)) throw *wrong;
    return std::get<std::int64_t>(known->second);
  }

  /// Token files have a vocabulary and must hold a sample; text has the tokenizer's, which must
  /// then be there. Data that is missing counts as text, so that a missing tokenizer is named with
  /// it.
  void source(Keys keys, const config::Dataset& dataset, const std::string& path,
              const Windows& windows) {
    if (!reading_.understood(keys)) return;
    if (!dataset.windows && !windows.seq_len) return;
    const std::string made_by = reading_.understood({kTokenizer}) ? job_.model.hf_assets_path : "";
    bool looked = false;
    obey(keys, [&] {
      const std::string name = fmt::format("{}\n{}\n{}\n{}\n{}", dataset.name, path,
                                           windows.seq_len.value_or(0), windows.held_out, made_by);
      const std::int64_t found = remembered(name, [&]() -> std::int64_t {
        if (!dataset.windows)
          return open_reader(dataset.kind, path, {.seq_len = *windows.seq_len}), 0;
        const std::vector<fs::path> files = data::data_files(path);
        if (data::TokenFile::is_token_file(files.front()))
          return vocabulary_of(files, made_by, windows);
        require_text_is_read(dataset.kind, files.front());
        return kText;
      });
      looked = true;
      reads_text_ = reads_text_ || found == kText;
      if (found == kText) texts_.push_back({*keys.begin(), keys.begin()[1], path, windows});
      if (vocabulary_ == 0 && found > 0) vocabulary_ = found;
      require(found <= 0 || found == vocabulary_, ExitCode::data,
              "'{}' has a vocabulary of {}, and other data of this job {}: they were made with "
              "different tokenizers; "
              "prepare both with the model's",
              path, found, vocabulary_);
    });
    reads_text_ = reads_text_ || (!looked && dataset.kind == config::DataKind::text);
  }

  static std::int64_t vocabulary_of(const std::vector<fs::path>& files, const fs::path& made_by,
                                    const Windows& windows) {
    const std::vector<data::TokenFile> opened = data::open_token_files(files);
    data::check_made_by(opened.front(), made_by);
    if (windows.seq_len) {
      data::HeldOut parts = data::hold_out(opened, *windows.seq_len, windows.held_out);
      data::WindowSource(std::move(parts.training), *windows.seq_len, 0);
    }
    return opened.front().info().vocab_size;
  }

  void tokenizer() {
    const std::string& folder = job_.model.hf_assets_path;
    if (!reading_.understood({kTokenizer})) return;
    obey({kTokenizer}, [&] {
      const auto load = [&]() -> std::int64_t {
        return data::Tokenizer::load(folder).vocab_size();
      };
      const std::int64_t size = remembered("tokenizer\n" + folder, load);
      if (vocabulary_ == 0) vocabulary_ = size;
    });
    if (!reading_.problems.empty() &&
        reading_.problems.back().about == std::vector<std::string>{std::string(kTokenizer)})
      reading_.problems.back().text += fmt::format(
          " (model.hf_assets_path = \"{}\": text needs a tokenizer; make one with `tessera "
          "tokenizer train`)",
          folder);
  }

  /// Texts are looked at when their tokenizer is known to be there.
  void texts() {
    if (!reading_.understood({kTokenizer}) || reading_.blames(kTokenizer)) return;
    const std::string& folder = job_.model.hf_assets_path;
    std::optional<data::Tokenizer> tokenizer;  // loaded once, and only if a text is new
    for (const Text& text : texts_)
      obey({text.key, text.dataset}, [&] {
        const std::string name =
            fmt::format("beginning\n{}\n{}\n{}\n{}", text.path, text.windows.seq_len.value_or(0),
                        text.windows.held_out, folder);
        remembered(name, [&] {
          if (!tokenizer) tokenizer = data::Tokenizer::load(folder);
          check_text(data::data_files(text.path), *tokenizer, text.windows);
          return kText;
        });
      });
  }

  /// A run that has checkpoints of its own does not look at the other's.
  void weights() {
    const auto origins = plan::WeightOrigins::of(reading_.resolved);
    const Keys asked{"checkpoint.load_step", "checkpoint.folder", "job.dump_folder"},
        named{"checkpoint.initial_load_path",
              "checkpoint.initial_load_in_hf",
              "checkpoint.enable",
              "checkpoint.folder",
              "job.dump_folder",
              "checkpoint.load_step"};
    std::optional<plan::WeightOrigin> origin;
    std::vector<checkpoint::StepFolder> own;
    obey(named, [&] {
      own = steps_in(origins.checkpoints);
      origin = origins.choose(reading_.use, !own.empty());
      if (*origin == plan::WeightOrigin::initial_state) initial_state(*origins.from);
      require(
          *origin != plan::WeightOrigin::initial_values || reading_.use == config::JobUse::training,
          ExitCode::checkpoint, "{} holds no checkpoint; name the folder of a run",
          origins.checkpoints.string());
    });
    if (origin == plan::WeightOrigin::own) obey(asked, [&] { own_step(origins, own); });
  }

  /// What a run cannot list, it cannot make either, and it then says so.
  std::vector<checkpoint::StepFolder> steps_in(const fs::path& folder) const try {
    return checkpoint::list_steps(folder);
  } catch (const Error&) {
    if (reading_.use == config::JobUse::training) return {};
    throw;
  }

  void initial_state(const plan::InitialState& from) {
    remembered(fmt::format("weights\n{}\n{}\n{}", from.path.string(), from.in_hf, from.branch),
               [&] { return require_weights(from), 0; });
  }

  /// A run that has saved since it began with this step may have removed it.
  void own_step(const plan::WeightOrigins& origins,
                const std::vector<checkpoint::StepFolder>& own) const {
    const bool trains = reading_.use == config::JobUse::training;
    const bool is_there = std::ranges::any_of(own, [&](const checkpoint::StepFolder& step) {
      return trains ? step.step >= origins.step : step.step == origins.step;
    });
    if ((trains ? origins.step >= 0 : origins.step_named) && !is_there)
      checkpoint::summarize(origins.checkpoints / checkpoint::step_name(origins.step));  // says why
  }

  /// That of the training data or of the tokenizer, if they are there: a debug model has as many.
  void take_usual_vocabulary() try {
    if (const auto& path = job_.training.dataset_path) {
      const std::vector<fs::path> files = data::data_files(*path);
      if (data::TokenFile::is_token_file(files.front())) {
        vocabulary_ = data::TokenFile::open(files.front()).info().vocab_size;
        return;
      }
    }
    vocabulary_ = data::Tokenizer::load(job_.model.hf_assets_path).vocab_size();
  } catch (const Error&) {
    // the model then has the vocabulary of its flavor
  }

  static constexpr std::int64_t kText = -1;
  static constexpr std::string_view kTokenizer = "model.hf_assets_path";
  config::Reading& reading_;
  const config::JobConfig& job_;
  FoundInFiles& found_;
  std::vector<Text> texts_;
  bool reads_text_ = false;
  std::int64_t vocabulary_ = 0;
};

}  // namespace

std::int64_t check_named_files(config::Reading& job, FoundInFiles& found, bool reads) {
  return NamedFiles(job, found).check(reads);
}

}  // namespace tessera::inputs
