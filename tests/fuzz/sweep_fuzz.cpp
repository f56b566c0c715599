// SPDX-License-Identifier: Apache-2.0
// A sweep file.
#include "input.hpp"
#include "tessera/config/resolve.hpp"
#include "tessera/sweep/sweep.hpp"

using namespace tessera;

namespace {

/// A point's flags give the job the values that the point has.
void check(const sweep::Sweep& sweep, const sweep::Point& point) {
  config::Resolved job;
  if (!fuzz::takes({ExitCode::usage}, [&] { job = config::resolve(flags(sweep, point)); })) return;
  for (const sweep::Setting& setting : point.settings)
    if (sweep::shown_value(get(*setting.option, job.job)) != sweep::shown_value(setting.value))
      fuzz::found("another value of " + std::string(setting.option->key));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::InputFolder folder;
  const std::string file =
      folder.put("sweep.toml", {reinterpret_cast<const char*>(data), size}).string();
  sweep::Sweep sweep;
  if (!fuzz::takes({ExitCode::usage}, [&] { sweep = sweep::read_sweep(file); })) return 0;
  const std::vector<sweep::Point> points = sweep::points(sweep);
  if (points.empty() || points.size() > static_cast<std::size_t>(sweep::kMostPoints))
    fuzz::found("no size of a sweep");
  check(sweep, points.front());
  check(sweep, points.back());
  if (overview(sweep, points.size()).empty()) fuzz::found("no overview");
  return 0;
}
