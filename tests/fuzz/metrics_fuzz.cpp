// SPDX-License-Identifier: Apache-2.0
// metrics.jsonl: read, drawn, and cut back to the step that the first byte says.
#include "input.hpp"
#include "tessera/metrics/jsonl_sink.hpp"
#include "tessera/report/loss_curve.hpp"

using namespace tessera;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::InputFolder folder;
  fuzz::Front input(data, size);
  const auto resume_step = input.number<std::uint8_t>();
  const auto file = folder.put("metrics.jsonl", input.rest());
  fuzz::takes({ExitCode::data}, [&] { (void)report::loss_curve_svg(metrics::read_records(file)); });
  if (resume_step % 2 == 0) return 0;
  const std::int64_t last = metrics::JsonlSink(file, resume_step).last_step();
  // What was kept is records of rising steps.
  const auto kept = metrics::read_records(file);
  if (last != (kept.empty() ? 0 : kept.back().step) || last > resume_step)
    fuzz::found("kept other lines");
  return 0;
}
