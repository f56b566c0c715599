// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>

#include "run_files.hpp"
#include "tessera/base/atomic_file.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/json.hpp"
#include "tessera/base/text_file.hpp"
#include "tessera/metrics/prediction.hpp"

namespace tessera::metrics {
namespace {

using nlohmann::ordered_json;

constexpr const char* kPredictionFile = "prediction.json";

ordered_json json_of(const RunFigures& figures) {
  ordered_json parts = ordered_json::object();
  for (const auto& [name, seconds] : figures.parts) parts[name] = seconds;
  return {{"step_seconds", figures.step_seconds},
          {"memory_bytes", figures.memory_bytes},
          {"parts_seconds", parts}};
}

std::int64_t count_in(const ordered_json& json, const char* key) {
  const auto count = whole_number(json.at(key), 0, std::numeric_limits<std::int64_t>::max());
  require(count.has_value(), ExitCode::data, "{} is no count", key);
  return *count;
}

RunFigures figures_in(const ordered_json& json) {
  RunFigures figures{json.at("step_seconds").get<double>(), count_in(json, "memory_bytes"), {}};
  for (const auto& [name, seconds] : json.at("parts_seconds").items())
    figures.parts.emplace_back(name, seconds.get<double>());
  return figures;
}

}  // namespace

void write_prediction(const std::filesystem::path& folder, const Prediction& prediction,
                      const std::string& machine_file) {
  const ordered_json json{{"format", "tessera-prediction 1"},
                          {"machine", prediction.of},
                          {"vocabulary", prediction.vocabulary},
                          {"predicted", json_of(prediction.predicted)},
                          {"measured", json_of(prediction.measured)}};
  write_file_atomically(folder / kMachineFile, machine_file, kRunFiles);
  write_file_atomically(folder / kPredictionFile, json_text(json, 2) + "\n", kRunFiles);
}

std::optional<Prediction> read_prediction(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / kPredictionFile;
  const auto text = read_text(file);
  if (!text) return std::nullopt;
  const ordered_json json = parse_ordered_json(*text);
  try {
    return Prediction{json.at("machine").get<std::string>(), figures_in(json.at("predicted")),
                      figures_in(json.at("measured")), count_in(json, "vocabulary")};
  } catch (const nlohmann::json::exception&) {  // both are told below
  } catch (const Error&) {
  }
  fail(ExitCode::data, "{} is not the JSON of a prediction; remove it to go without",
       file.string());
}

void forget_prediction(const std::filesystem::path& folder) {
  std::error_code ignored;
  std::filesystem::remove(folder / kPredictionFile, ignored);
  std::filesystem::remove(folder / kMachineFile, ignored);
}

}  // namespace tessera::metrics
