// SPDX-License-Identifier: Apache-2.0
// A pipeline schedule as CSV: read, given transfers, rehearsed, timed and drawn.
#include "input.hpp"
#include "tessera/schedule/csv.hpp"
#include "tessera/schedule/schedule.hpp"
#include "tessera/schedule/timeline.hpp"

using namespace tessera;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::InputFolder folder;
  const auto file = folder.put("schedule.csv", {reinterpret_cast<const char*>(data), size});
  fuzz::takes({ExitCode::usage}, [&] {
    const schedule::Table table = schedule::read_csv(file);
    const auto lists = schedule::with_transfers(table.computations, table.map);
    if (!schedule::find_fault(lists, table.map, table.microbatches).empty()) return;
    const schedule::Timeline timeline = schedule::simulate(lists, table.map);
    (void)schedule::to_svg(timeline, table.map, "fuzz");
    const auto again = schedule::read_csv(folder.put("again.csv", schedule::to_csv(timeline)));
    if (again.computations != table.computations)
      fuzz::found("another schedule when written and read again");
  });
  return 0;
}
