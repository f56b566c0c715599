// SPDX-License-Identifier: Apache-2.0
#include "fault_bundle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "tessera/base/atomic_file.hpp"
#include "tessera/base/json.hpp"
#include "tessera/base/shell_words.hpp"
#include "tessera/checkpoint/inspect.hpp"
#include "tessera/hf/safetensors.hpp"

namespace tessera::train {
namespace {

namespace fs = std::filesystem;

/// Row by row; "documents", which say where documents begin, only of a source that knows.
void write_batch(const fs::path& file, const Fault& fault, const data::SampleSource& source) {
  const std::int64_t seq = source.seq_len();
  const Shape shape{1, fault.global_batch, seq};
  std::vector<TensorInfo> entries{{"inputs", DType::i32, shape}, {"labels", DType::i32, shape}};
  const bool knows_documents = !source.document_starts(fault.first_sample).empty();
  if (knows_documents) entries.push_back({"documents", DType::i32, shape});
  hf::SafetensorsWriter writer(file, entries);
  std::vector<std::int32_t> inputs(static_cast<std::size_t>(seq)), labels(inputs.size()),
      documents(inputs.size());
  for (std::int64_t row = 0; row < fault.global_batch; ++row) {
    source.read(fault.first_sample + row, inputs, labels);
    writer.write("inputs", row * seq, seq, inputs.data());
    writer.write("labels", row * seq, seq, labels.data());
    if (!knows_documents) continue;
    std::ranges::fill(documents, 0);
    for (const std::int64_t start : source.document_starts(fault.first_sample + row))
      documents[static_cast<std::size_t>(start)] = start > 0;
    std::partial_sum(documents.begin(), documents.end(), documents.begin());
    writer.write("documents", row * seq, seq, documents.data());
  }
  writer.finish();
}

/// The latest checkpoint from before the fault's step that looks complete; empty if there is none.
fs::path newest_before(const Fault& fault) {
  if (fault.checkpoints.empty()) return {};
  const std::vector<checkpoint::StepFolder> steps = checkpoint::list_steps(fault.checkpoints);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step)
    if (step->step < fault.step && checkpoint::can_load(checkpoint::verify(step->path, false)))
      return step->path;
  return {};
}

/// Starts from there, and not as the job itself started.
std::string start_from(const fs::path& step, const plan::FaultPlan& plan) {
  if (step.empty()) return {};
  return " --checkpoint.initial_load_path " + shell_word(step.string()) + plan.replay_start_flags;
}

}  // namespace

fs::path write_fault_bundle(const plan::JobPlan& plan, const Fault& fault,
                            const data::SampleSource& source) {
  const fs::path folder = plan.run.folder / "faults" / fmt::format("step-{:08d}", fault.step),
                 batch = folder / "batch.safetensors";
  fs::create_directories(folder);
  write_batch(batch, fault, source);
  const nlohmann::json report{
      {"step", fault.step},
      {"what", fault.what},
      {"first_sample", fault.first_sample},
      {"samples", fault.global_batch},
      {"replay",
       fmt::format("tessera train JOB.toml --job.dump_folder ELSEWHERE --training.dataset replay "
                   "--training.dataset_path {} --training.steps 1 --checkpoint.no_enable{}{}",
                   shell_word(batch.string()), start_from(newest_before(fault), plan.faults),
                   plan.faults.replay_flags)}};
  write_file_atomically(folder / "fault.json", json_text(report, 2) + "\n");
  return folder;
}

}  // namespace tessera::train
