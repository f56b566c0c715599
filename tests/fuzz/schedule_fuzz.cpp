// A pipeline schedule as CSV: read, given transfers, rehearsed, timed and drawn.
#include "input.hpp"
#include "tessera/parallel/schedule_csv.hpp"

using namespace tessera;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::InputFolder folder;
  const auto file = folder.put("schedule.csv", {reinterpret_cast<const char*>(data), size});
  fuzz::takes({ExitCode::usage}, [&] {
    const parallel::ScheduleTable table = parallel::read_schedule_csv(file);
    const auto lists = parallel::with_transfers(table.computations, table.map);
    if (!parallel::find_fault(lists, table.map, table.microbatches).empty()) return;
    const parallel::Timeline timeline = parallel::simulate(lists, table.map);
    (void)parallel::timeline_svg(timeline, table.map, "fuzz");
    const auto again = parallel::read_schedule_csv(folder.put("again.csv", parallel::schedule_csv(timeline)));
    if (again.computations != table.computations) fuzz::found("another schedule when written and read again");
  });
  return 0;
}
