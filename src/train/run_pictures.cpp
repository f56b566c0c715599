// SPDX-License-Identifier: Apache-2.0
#include "run_pictures.hpp"

#include <fmt/format.h>

#include "tessera/base/atomic_file.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"
#include "tessera/report/loss_curve.hpp"
#include "tessera/report/page.hpp"
#include "tessera/report/run_page.hpp"
#include "tessera/schedule/timeline.hpp"

namespace tessera::train {
namespace {

std::string pipeline_svg(const plan::MicrobatchPlan& plan) {
  const plan::PipelinePlan& pipeline = plan.pipeline;
  const schedule::Timeline timeline = simulate(pipeline.lists, pipeline.map);
  const std::string title = fmt::format(
      "{}: {} stages on {} ranks, {} microbatches, bubble {:.1f} % if F, I and W take equally long",
      report::escape(pipeline.name), pipeline.map.stages(), pipeline.map.ranks(),
      plan.batch.microbatches, 100 * timeline.bubble());
  return to_svg(timeline, pipeline.map, title);
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

void write_run_pictures(const metrics::RunFolder& folder, Trainer& trainer) {
  if (std::error_code ignored; !std::filesystem::is_directory(folder.path(), ignored)) return;
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
      write_file_atomically(pipeline, pipeline_svg(trainer.microbatches()));
    else
      std::filesystem::remove(pipeline, ignored);  // of an attempt on another mesh
  });
  draw_or_warn("index.html",
               [&] { report::write_run_page(folder.path(), folder.path() / "index.html"); });
}

}  // namespace tessera::train
