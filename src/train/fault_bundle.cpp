#include "fault_bundle.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "tessera/checkpoint/safetensors.hpp"
#include "tessera/metrics/atomic_file.hpp"

namespace tessera::train {
namespace {

namespace fs = std::filesystem;

void write_batch(const fs::path& file, const Fault& fault, const data::SampleSource& source) {
  const std::int64_t seq = source.seq_len();
  const Shape shape{1, fault.global_batch, seq};
  checkpoint::SafetensorsWriter writer(file, {{"inputs", DType::i32, shape}, {"labels", DType::i32, shape}});
  std::vector<std::int32_t> inputs(static_cast<std::size_t>(seq)), labels(inputs.size());
  for (std::int64_t row = 0; row < fault.global_batch; ++row) {
    source.read(fault.first_sample + row, inputs, labels);
    writer.write("inputs", row * seq, seq, inputs.data());
    writer.write("labels", row * seq, seq, labels.data());
  }
  writer.finish();
}

}  // namespace

fs::path write_fault_bundle(const fs::path& run, const Fault& fault, const data::SampleSource& source) {
  const fs::path folder = run / "faults" / fmt::format("step-{:08d}", fault.step), batch = folder / "batch.safetensors";
  fs::create_directories(folder);
  write_batch(batch, fault, source);
  const std::string from = fault.checkpoint.empty() ? "" : " --checkpoint.initial_load_path " + fault.checkpoint;
  const nlohmann::json report{
      {"step", fault.step},
      {"what", fault.what},
      {"first_sample", fault.first_sample},
      {"samples", fault.global_batch},
      {"replay", fmt::format("tessera train JOB.toml --job.dump_folder ELSEWHERE --training.dataset replay "
                             "--training.dataset_path {} --training.steps 1 --checkpoint.no_enable{}",
                             batch.string(), from)}};
  metrics::write_file_atomically(folder / "fault.json", report.dump(2) + "\n");
  return folder;
}

}  // namespace tessera::train
