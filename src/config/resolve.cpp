// SPDX-License-Identifier: Apache-2.0
#include "tessera/config/resolve.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "draft.hpp"
#include "tessera/base/suggest.hpp"

namespace tessera::config {

namespace {

std::string setting(const Option& option, const JobConfig& job) {
  return fmt::format("{} = {}", option.key, to_toml(get(option, job)));
}

/// "x = 3 is refused: why; what works instead".
std::string refusal(const Option& option, const JobConfig& job) {
  const std::string hint =
      option.key == "model.name"
          ? did_you_mean(job.model.name, {option.working.begin(), option.working.end()})
          : std::string();
  return fmt::format("{} is not supported: {}{}", setting(option, job), option.why, hint);
}

/// What TorchTitan trains and Tessera does not; empty for other names.
std::string_view other_model(std::string_view name) {
  if (name == "flux") return "it makes images";
  if (name == "vlm") return "it reads images";
  if (name == "llama3_ft") return "its replicas join and leave the run (TorchFT); train llama3";
  if (name == "llama4") return "Tessera does not have it";
  for (const std::string_view experiment : {"simple_fsdp.", "compiler_toolkit.", "autoparallel."})
    if (name.starts_with(experiment)) return "it is an experiment with PyTorch's compiler";
  return name == "transformers_modeling_backend" ? "it is Python code of transformers" : "";
}

/// One line for a file of such a model, whose other keys and values would fill a page.
void refuse_other_model(Draft& draft) {
  const std::string& name = draft.job.model.name;
  const std::string_view why = draft.job.model.hf_config ? std::string_view() : other_model(name);
  if (why.empty()) return;
  draft.problems.clear();
  draft.complain_of(
      {"model.name"},
      fmt::format("model.name = \"{}\" is not supported: {}. Tessera trains {}; the rest of "
                  "the job was not checked",
                  shown(name), why, fmt::join(find_option("model.name")->working, ", ")));
  draft.whole = false;
}

Resolved resolved_of(Draft& draft) {
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

bool Reading::reads_training_data() const {
  return use == JobUse::training || !resolved.job.validation.dataset_path;
}

Reading read_job(const std::vector<std::string>& args) {
  Draft draft;
  CommandLine line = read_command_line(args, draft);
  if (!line.file.empty()) read_toml_file(line.file, draft);
  for (Flag& flag : line.flags) draft.set(*flag.option, std::move(flag.value), flag.place);
  if (!line.file.empty()) {
    draft.job.job.config_file = line.file;
    draft.places.insert_or_assign("job.config_file", line.file_place);
  }
  derive(draft);
  check_values(draft);
  refuse_other_model(draft);
  warn_of_harmless(draft);
  Resolved resolved = resolved_of(draft);
  return {std::move(static_cast<Findings&>(draft)), std::move(resolved)};
}

Resolved resolve(const std::vector<std::string>& args) {
  Reading job = read_job(args);
  throw_if_wrong(job.problems);
  return std::move(job.resolved);
}

void warn_of_harmless(Draft& draft) {
  std::string list;
  for (const Option& option : options()) {
    const bool other = draft.written(option.key) && get(option, draft.job) != default_of(option);
    if (option.support == Support::harmless && other && matters(option, draft.job))
      list += fmt::format("\n  {} ({}): {}", setting(option, draft.job),
                          draft.place_of(option.key).origin(), option.why);
  }
  if (!list.empty()) draft.warnings.push_back("these keys have no effect in Tessera:" + list);
}

void find_unsupported(Reading& reading) {
  const JobConfig& job = reading.resolved.job;
  for (const Option& option : options())
    if (!option.why.empty() && !honoured(option, job))
      reading.complain_of({option.key}, refusal(option, job));
}

}  // namespace tessera::config
