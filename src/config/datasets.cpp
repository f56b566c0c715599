// SPDX-License-Identifier: Apache-2.0
// Data that a job names: in the folder TESSERA_DATA, or the sample text that comes with Tessera.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include "draft.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/shipped_files.hpp"
#include "tessera/config/datasets.hpp"

namespace tessera::config {

namespace {

namespace fs = std::filesystem;

constexpr const char* kDataFolder = "TESSERA_DATA";
constexpr const char* kSample = "c4_test";

/// What a name may lack of the file's, in the order in which it is tried.
constexpr std::array kEndings{"",         ".tokens",   ".jsonl", ".jsonl.gz", ".jsonl.zst", ".json",
                              ".json.gz", ".json.zst", ".txt",   ".txt.gz",   ".txt.zst"};

bool is_there(const fs::path& path) {
  std::error_code problem;
  return fs::exists(path, problem);
}

/// The file or folder of that name in TESSERA_DATA.
std::optional<std::string> in_data_folder(const std::string& name) {
  const char* folder = std::getenv(kDataFolder);
  if (!folder || !*folder || name.empty() || fs::path(name).is_absolute()) return std::nullopt;
  std::error_code problem;
  for (const char* ending : kEndings)
    if (const fs::path path = fs::absolute(fs::path(folder) / (name + ending), problem);
        is_there(path))
      return path.lexically_normal().string();
  return std::nullopt;
}

/// A pattern for the files of this part of C4, where a folder, or its folder `en`, has some. The
/// other parts may be in the same folder.
std::optional<std::string> part_of_c4(const std::string& dataset, const fs::path& folder) {
  const std::string part = dataset == "c4"              ? "c4-train."
                           : dataset == "c4_validation" ? "c4-validation."
                                                        : "";
  if (part.empty() || folder.string().find_first_of("*?[") != std::string::npos)
    return std::nullopt;
  for (const fs::path& place : {folder, folder / "en"}) {
    std::error_code problem;
    for (fs::directory_iterator file(place, problem), end; !problem && file != end;
         file.increment(problem))
      if (file->path().filename().string().starts_with(part))
        return (place / (part + "*")).string();
  }
  return std::nullopt;
}

struct DataSource {
  std::string section;
  const std::string& dataset;
  std::optional<std::string>& path;
};

void find_path(Draft& draft, const DataSource& source) {
  const std::string key = source.section + ".dataset_path", dataset = source.section + ".dataset";
  const auto take = [&](std::string path, std::string origin) {
    source.path = std::move(path);
    draft.derived[key] = std::move(origin);
  };
  if (source.path)
    if (auto part = part_of_c4(source.dataset, *source.path)) return take(*part, dataset);
  const auto take_found = [&](const std::string& path) {
    take(part_of_c4(source.dataset, path).value_or(path), kDataFolder);
  };
  if (source.path) {
    if (is_there(*source.path)) return;
    if (const auto found = in_data_folder(*source.path)) take_found(*found);
  } else if (is_looked_up(source.dataset) && !draft.written(key)) {  // "none" means none
    const fs::path sample = share_folder() / "datasets" / kSample / "data.jsonl";
    if (const auto found = in_data_folder(source.dataset))
      take_found(*found);
    else if (source.dataset == kSample && draft.written(dataset) && is_there(sample))
      take(sample.string(), dataset);
  }
}

/// TorchTitan's debug jobs name a tokenizer of its checkout. The sample text has one of its own to
/// take the place of that.
void find_tokenizer(Draft& draft) {
  std::string& path = draft.job.model.hf_assets_path;
  const fs::path sample = share_folder() / "datasets" / kSample;
  const auto& text = draft.job.training.dataset_path;
  if (path != JobConfig{}.model.hf_assets_path || is_there(path) || !text ||
      *text != sample / "data.jsonl")
    return;
  draft.warn_of({"model.hf_assets_path"},
                fmt::format("there is no {}: {} uses the tokenizer that comes with it ({})", path,
                            kSample, sample.string()));
  path = sample.string();
  draft.derived["model.hf_assets_path"] = "training.dataset";
}

}  // namespace

bool is_looked_up(std::string_view dataset) { return dataset.starts_with("c4"); }

const Dataset& dataset_of(std::string_view name) {
  const auto found = std::ranges::find(kDatasets, name, &Dataset::name);
  TESSERA_EXPECT(found != kDatasets.end(), "the key let the dataset '{}' pass", name);
  return *found;
}

void find_data(Draft& draft) {
  Training& training = draft.job.training;
  Validation& validation = draft.job.validation;
  if (training.mixture.empty())
    find_path(draft, {"training", training.dataset, training.dataset_path});
  for (Strings& row : training.mixture)
    if (!row.empty() && !is_there(row[0])) row[0] = in_data_folder(row[0]).value_or(row[0]);
  if (validation.enable && validation.split == 0)
    find_path(draft, {"validation", validation.dataset, validation.dataset_path});
  find_tokenizer(draft);
}

}  // namespace tessera::config
