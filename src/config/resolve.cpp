#include "tessera/config/resolve.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "draft.hpp"

namespace tessera::config {

namespace {

std::string setting(const Option& option, const JobConfig& job) {
  return fmt::format("{} = {}", option.key, to_toml(get(option, job)));
}

/// "x = 3 is not supported yet (job.toml:4); use 1 or 2".
std::string refusal(const Option& option, const Resolved& resolved) {
  const std::string alternative = to_toml(default_of(option));
  return fmt::format("{} is not supported yet ({}); use {}", setting(option, resolved.job), resolved.origin(option.key),
                     option.working.size() > 1 ? fmt::format("{}", fmt::join(option.working, " or ")) : alternative);
}

/// Is the feature that this key turns on (true, a degree, a size, a list) turned on?
bool turned_on(const Option& option, const JobConfig& job) {
  const Value value = get(option, job);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number > 1;
  if (const auto* list = std::get_if<Strings>(&value)) return !list->empty();
  return false;
}

Resolved finish(Draft&& draft) {
  Resolved resolved;
  for (const Option& option : options()) {
    const auto derived = draft.derived.find(std::string(option.key));
    resolved.origins[std::string(option.key)] =
        derived == draft.derived.end() ? draft.place_of(option.key).origin() : derived->second;
  }
  resolved.job = std::move(draft.job);
  resolved.warnings = std::move(draft.warnings);
  return resolved;
}

}  // namespace

Resolved resolve(const std::vector<std::string>& args) {
  Draft draft;
  CommandLine line = read_command_line(args, draft);
  if (!line.file.empty()) read_toml_file(line.file, draft);
  for (Flag& flag : line.flags) draft.set(*flag.option, std::move(flag.value), flag.place);
  if (!line.file.empty()) {
    draft.job.job.config_file = line.file;
    draft.places.insert_or_assign("job.config_file", line.file_place);
  }
  derive(draft);
  check_combinations(draft);
  throw_if_wrong(draft);
  warn_of_unsupported(draft);
  return finish(std::move(draft));
}

void warn_of_unsupported(Draft& draft) {
  const auto without_effect = [&](const Option& option) {
    return draft.written(option.key) && !honoured(option, draft.job);
  };
  std::string list;
  for (const Option& option : options()) {
    const Option* partner = option.under.empty() ? nullptr : find_option(option.under);
    const bool told = partner && (without_effect(*partner) || !turned_on(*partner, draft.job));
    if (!without_effect(option) || told) continue;
    list += fmt::format("\n  {} ({})", setting(option, draft.job), draft.place_of(option.key).origin());
  }
  if (!list.empty()) draft.warnings.push_back("these keys have no effect in this version of Tessera:" + list);
}

std::vector<std::string> unsupported_for_run(const Resolved& resolved) {
  std::vector<std::string> reasons;
  for (const Option& option : options())
    if (option.decisive && !honoured(option, resolved.job)) reasons.push_back(refusal(option, resolved));
  const Training& training = resolved.job.training;
  if (!training.dataset_path && training.mixture.empty())
    reasons.push_back(
        fmt::format("training.dataset = \"{}\" has no training.dataset_path ({}); name the file or folder to read: "
                    "Tessera downloads nothing",
                    training.dataset, resolved.origin("training.dataset")));
  const Validation& validation = resolved.job.validation;
  if (validation.enable && !validation.dataset_path && validation.split == 0)
    reasons.push_back(
        fmt::format("validation.enable = true has no data ({}); name validation.dataset_path, or hold out a share of "
                    "the training data (validation.split = 0.01): Tessera downloads nothing",
                    resolved.origin("validation.enable")));
  return reasons;
}

}  // namespace tessera::config
