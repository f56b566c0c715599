// SPDX-License-Identifier: Apache-2.0
#include "run_pictures.hpp"

#include <fmt/format.h>

#include "tessera/base/atomic_file.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"
#include "tessera/report/loss_curve.hpp"
#include "tessera/report/run_page.hpp"
#include "tessera/schedule/timeline.hpp"
#include "tessera/train/pipeline_plan.hpp"

namespace tessera::train {
namespace {

std::string pipeline_svg(const config::JobConfig& job, const Trainer& trainer,
                         const mesh::Layout& layout) {
  const PipelinePlan plan = pipeline_plan_of(job, trainer.model(), layout, trainer.batch_plan());
  const schedule::Timeline timeline = simulate(plan.lists, plan.map);
  const std::string title = fmt::format(
      "{}: {} stages on {} ranks, {} microbatches, bubble {:.1f} % if F, I and W take equally long",
      job.parallelism.pipeline_parallel_schedule_csv.empty()
          ? job.parallelism.pipeline_parallel_schedule
          : job.parallelism.pipeline_parallel_schedule_csv,
      plan.map.stages(), plan.map.ranks(), trainer.batch_plan().microbatches,
      100 * timeline.bubble());
  return to_svg(timeline, plan.map, title);
}

template <class Draw>
void draw_or_warn(const char* what, const Draw& draw) {
  try {
    draw();
  } catch (const tessera::Error& error) {
    log::warning("{} is not written: {}", what, error.what());
  }
}

}  // namespace

void write_run_pictures(const metrics::RunFolder& folder, const config::JobConfig& job,
                        Trainer& trainer) {
  const mesh::Layout& layout = trainer.mesh().layout();
  draw_or_warn("loss.svg", [&] {
    report::write_loss_curve(
        folder.loss_curve_file(), folder.metrics_file(),
        {"Training loss", trainer.model().name + ", " + layout.to_string(), true});
  });
  const auto pipeline = folder.path() / "pipeline.svg";
  draw_or_warn("pipeline.svg", [&] {
    std::error_code ignored;
    if (layout.degree(mesh::Axis::pp) > 1)
      write_file_atomically(pipeline, pipeline_svg(job, trainer, layout));
    else
      std::filesystem::remove(pipeline, ignored);  // of an attempt on another mesh
  });
  draw_or_warn("index.html",
               [&] { report::write_run_page(folder.path(), folder.path() / "index.html"); });
}

}  // namespace tessera::train
