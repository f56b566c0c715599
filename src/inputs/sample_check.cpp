// SPDX-License-Identifier: Apache-2.0
#include "sample_check.hpp"

#include <functional>
#include <string>

#include "readers.hpp"
#include "tessera/base/error.hpp"
#include "tessera/checkpoint/inspect.hpp"
#include "tessera/inputs/samples.hpp"

namespace tessera::inputs {
namespace {

/// False where its folder does not say: the run then does.
bool begins_with_step_1(const plan::LoadPlan& load, config::JobUse use) try {
  const bool has_own = !checkpoint::list_steps(load.checkpoints).empty();
  const plan::WeightOrigin origin = load.choose(use, has_own);
  return origin == plan::WeightOrigin::initial_values ||
         (origin == plan::WeightOrigin::initial_state && !load.from->branch);
} catch (const Error&) {
  return false;
}

/// "training" or "validation" of a job.
void check_section(config::Reading& job, const std::string& section,
                   const std::function<void()>& rule) {
  const std::string path = section + ".dataset_path", dataset = section + ".dataset";
  job.obey({path, dataset}, rule);
}

}  // namespace

void check_samples(config::Reading& job, const plan::JobPlan& plan) {
  const plan::DataPlan& data = plan.data;
  const std::int64_t batch = plan.batch().global_batch;
  if (!data.dataset.windows && job.reads_training_data())
    check_section(job, "training", [&] {
      const auto source = open_reader(data.dataset.kind, data.sources.front().path,
                                      {data.seq_len, batch, marks_documents(data)});
      if (job.use == config::JobUse::training && !plan.save.seed_only &&
          begins_with_step_1(plan.load, job.use))
        require_samples(*source, plan.run.steps, batch);
    });
  if (data.validation && data.validation->path && !data.validation->dataset.windows)
    check_section(job, "validation", [&] {
      open_reader(data.validation->dataset.kind, *data.validation->path,
                  {data.validation->seq_len, 0, marks_documents(data)});
    });
}

}  // namespace tessera::inputs
