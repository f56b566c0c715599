// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "reading.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/suggest.hpp"

namespace tessera::sweep {
namespace {

using config::TomlEntry;
using config::TomlTable;

/// What the sweep itself says to sbatch, and what to use in its place.
constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kOwnOptions{
    {{"array", "at_once"},
     {"ntasks", "ranks"},
     {"time", "time"},
     {"output", "the output.log of each point"},
     {"error", "the output.log of each point"},
     {"signal", "the value that it sets"},
     {"requeue", "TESSERA_REQUEUE=0 to prevent a requeue"},
     {"open-mode", "the value that it sets"},
     {"chdir", "the folder from which you submit the sweep"},
     {"wait", "tessera sweep status"},
     {"test-only", "tessera sweep submit --dry-run"},
     {"clusters", "a login node of that cluster"}}};

/// Fills a Sweep from the entries of its file.
class Reader {
 public:
  Reader(Sweep& sweep, Problems& problems) : sweep_(sweep), problems_(problems) {}

  void entry(const TomlEntry& entry) {
    const auto known = std::ranges::find(kEntries, entry.key, &Known::name);
    if (known != kEntries.end()) return (this->*known->read)(entry);
    std::vector<std::string> names;
    for (const Known& k : kEntries) names.emplace_back(k.name);
    const std::string hint = did_you_mean(entry.key, names);
    problems_.add(
        entry,
        fmt::format("unknown key '{}'{}", entry.key.substr(0, 80),
                    hint.empty() ? fmt::format("; a sweep has {}", fmt::join(names, ", ")) : hint));
  }

  /// The slowest axis first, so that more draws or entries leave the numbers of earlier points
  /// alone.
  void join_axes() {
    for (auto* axis : {&list_, &random_, &zip_})
      if (*axis) sweep_.axes.push_back(std::move(**axis));
    std::ranges::move(grid_, std::back_inserter(sweep_.axes));
  }

  /// Complains of keys that two blocks set, from the entries of the file.
  void refuse_repeats(const TomlTable& file) {
    std::vector<std::pair<const config::Option*, std::string>> seen;
    for (const TomlEntry& block : file) {
      if (block.key != "set" && block.key != "grid" && block.key != "zip" &&
          block.key != "random" && block.key != "list")
        continue;
      std::set<const config::Option*> here;
      for (const auto& [option, at] : keys_of(block)) {
        const auto before = std::ranges::find(seen, option, &decltype(seen)::value_type::first);
        if (before != seen.end())
          problems_.add(*at,
                        fmt::format("{} is in [{}] too; keep one", option->key, before->second));
        here.insert(option);
      }
      for (const config::Option* option : here) seen.emplace_back(option, block.key);
    }
  }

 private:
  struct Known {
    std::string_view name;
    void (Reader::*read)(const TomlEntry&);
  };
  static const std::array<Known, 12> kEntries;

  static std::vector<JobKey> keys_of(const TomlEntry& block) {
    Problems told("");  // they were reported when the block was read
    std::vector<JobKey> keys;
    if (const auto* table = std::get_if<TomlTable>(&block.node.value))
      keys = job_keys(*table, told);
    if (const auto* list = std::get_if<config::TomlList>(&block.node.value))
      for (const config::TomlNode& node : *list)
        if (const auto* table = std::get_if<TomlTable>(&node.value))
          std::ranges::copy(job_keys(*table, told), std::back_inserter(keys));
    return keys;
  }

  std::string text(const TomlEntry& entry) {
    const auto* value = std::get_if<std::string>(&entry.node.value);
    if (value && !value->empty()) return *value;
    problems_.add(entry, fmt::format("{} must be a string in quotes", entry.key));
    return "";
  }
  int count(const TomlEntry& entry) {
    const auto* value = std::get_if<std::int64_t>(&entry.node.value);
    if (value && *value >= 1 && *value <= 1'000'000) return static_cast<int>(*value);
    problems_.add(entry, fmt::format("{} must be a whole number from 1 up", entry.key));
    return 1;
  }

  void job(const TomlEntry& entry) {
    const std::filesystem::path beside = std::filesystem::path(sweep_.file).parent_path();
    if (const std::string path = text(entry); !path.empty())
      sweep_.job = (beside / path).lexically_normal().string();
  }
  void folder(const TomlEntry& entry) { sweep_.folder = text(entry); }
  void ranks(const TomlEntry& entry) { sweep_.ranks = count(entry); }
  void at_once(const TomlEntry& entry) { sweep_.at_once = count(entry); }
  void time(const TomlEntry& entry) {
    const auto* value = std::get_if<std::string>(&entry.node.value);
    sweep_.seconds = value ? seconds_of(*value) : std::nullopt;
    if (!sweep_.seconds)
      problems_.add(entry,
                    "time must be hours:minutes:seconds or days-hours:minutes:seconds in quotes, "
                    "as \"01:30:00\"");
  }
  void common(const TomlEntry& entry) { sweep_.common = read_common(entry, problems_); }
  void grid(const TomlEntry& entry) { grid_ = read_grid(entry, problems_); }
  void zip(const TomlEntry& entry) { zip_ = read_zip(entry, problems_); }
  void list(const TomlEntry& entry) { list_ = read_list(entry, problems_); }
  void random(const TomlEntry& entry) { random_ = read_random(entry, problems_); }
  void exclude(const TomlEntry& entry) { sweep_.exclusions = read_exclusions(entry, problems_); }
  void slurm(const TomlEntry& entry) {
    const TomlTable* table = table_of(entry, problems_);
    for (const TomlEntry& option : table ? *table : TomlTable{}) slurm_option(option);
  }
  void slurm_option(const TomlEntry& option) {
    const auto own =
        std::ranges::find(kOwnOptions, option.key, &decltype(kOwnOptions)::value_type::first);
    const bool plain = !option.key.empty() && option.key.find_first_not_of(
                                                  "abcdefghijklmnopqrstuvwxyz-") == option.key.npos;
    if (own != kOwnOptions.end())
      return problems_.add(option,
                           fmt::format("{} is set by the sweep; use {}", option.key, own->second));
    if (!plain || option.key.front() == '-')
      return problems_.add(option,
                           "write the long name of the option of sbatch, without leading dashes, "
                           "such as partition = \"gpu\"");
    std::string value;
    if (const auto* number = std::get_if<std::int64_t>(&option.node.value))
      value = fmt::format("{}", *number);
    if (const auto* words = std::get_if<std::string>(&option.node.value)) value = *words;
    const bool on = std::get_if<bool>(&option.node.value) && std::get<bool>(option.node.value);
    if ((value.empty() && !on) || value.find_first_of("\n\r") != value.npos)
      return problems_.add(option,
                           fmt::format("{} must be a string, a whole number or true", option.key));
    sweep_.slurm.emplace_back(option.key, value);
  }

  Sweep& sweep_;
  Problems& problems_;
  std::optional<Axis> list_, random_, zip_;
  std::vector<Axis> grid_;
};

constexpr std::array<Reader::Known, 12> Reader::kEntries{{{"job", &Reader::job},
                                                          {"folder", &Reader::folder},
                                                          {"ranks", &Reader::ranks},
                                                          {"time", &Reader::time},
                                                          {"at_once", &Reader::at_once},
                                                          {"set", &Reader::common},
                                                          {"grid", &Reader::grid},
                                                          {"zip", &Reader::zip},
                                                          {"list", &Reader::list},
                                                          {"random", &Reader::random},
                                                          {"exclude", &Reader::exclude},
                                                          {"slurm", &Reader::slurm}}};

/// An exclusion of nothing is a mistake.
void check_exclusions(const Sweep& sweep, Problems& problems) {
  Sweep all = sweep;
  all.exclusions.clear();
  const std::vector<Point> everything = points(all);
  for (const Exclusion& exclusion : sweep.exclusions)
    if (std::ranges::none_of(everything,
                             [&](const Point& point) { return fits(exclusion, point.settings); }))
      problems.add(exclusion.line, 1,
                   "this exclusion matches no point; its values must be values of the sweep");
}

void check_size(const Sweep& sweep, Problems& problems) {
  double product = 1;
  for (const Axis& axis : sweep.axes) product *= static_cast<double>(axis.rows.size());
  if (product > static_cast<double>(kMostPoints))
    problems.add(
        1, 1,
        fmt::format("{:.0f} points are too many; a sweep has at most {}", product, kMostPoints));
  if (sweep.axes.empty())
    problems.add(1, 1, "nothing varies; write [grid], [zip], [[list]] or [random]");
}

}  // namespace

void Problems::throw_if_any() const {
  constexpr std::size_t kShown = 100;
  if (found_.empty()) return;
  std::vector<Problem> sorted = found_;
  std::ranges::stable_sort(sorted, {},
                           [](const Problem& p) { return std::pair(p.line, p.column); });
  const std::size_t count = sorted.size();
  sorted.resize(std::min(count, kShown));
  std::string text = count > 1 ? fmt::format("{} problems in the sweep", count) : "";
  for (const Problem& p : sorted)
    text += fmt::format("{}{}:{}:{}: {}", count > 1 ? "\n  " : "", file_, p.line, p.column, p.text);
  if (count > kShown) text += fmt::format("\n  ... and {} more", count - kShown);
  throw Error(ExitCode::usage, text);
}

Sweep read_sweep(const std::string& file) {
  const TomlTable tree = config::read_toml_tree(file);
  Sweep sweep;
  sweep.file = file;
  Problems problems(file);
  Reader reader(sweep, problems);
  for (const TomlEntry& entry : tree) reader.entry(entry);
  reader.refuse_repeats(tree);
  reader.join_axes();
  const bool has_job =
      std::ranges::any_of(tree, [](const TomlEntry& entry) { return entry.key == "job"; });
  if (!has_job)
    problems.add(1, 1,
                 "job is missing: name the job file of all points, such as job = \"base.toml\"");
  problems.throw_if_any();
  check_size(sweep, problems);
  problems.throw_if_any();
  check_exclusions(sweep, problems);
  problems.throw_if_any();
  if (sweep.folder.empty())
    sweep.folder = fmt::format("outputs/{}", std::filesystem::path(file).stem().string());
  require(!points(sweep).empty(), ExitCode::usage, "{}: every point is excluded", file);
  return sweep;
}

}  // namespace tessera::sweep
