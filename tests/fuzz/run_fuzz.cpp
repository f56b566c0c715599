// SPDX-License-Identifier: Apache-2.0
// The folder of a run: run.json and metrics.jsonl, read and drawn as a page.
#include "input.hpp"
#include "tessera/report/run_page.hpp"

using namespace tessera;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::InputFolder folder;
  fuzz::Front input(data, size);
  const std::string_view attempts = input.until('\0');
  const auto file = folder.put("run.json", attempts);
  folder.put("metrics.jsonl", input.rest());
  fuzz::takes({ExitCode::data},
              [&] { (void)report::run_page(report::read_run(file.parent_path()), file); });
  return 0;
}
