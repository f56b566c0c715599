// SPDX-License-Identifier: Apache-2.0
// tessera report RUN: a training run as one HTML page.
#include <filesystem>
#include <iostream>

#include "command.hpp"
#include "command_line.hpp"
#include "tessera/report/run_page.hpp"

namespace {

int run(const tessera::app::Args& args) {
  std::string folder, to;
  tessera::app::Flags app(
      "Writes a training run as one HTML page: loss, learning rate, gradient norm, throughput, "
      "pipeline, sampled text, "
      "attempts, and settings that are not the defaults.",
      "report");
  app.add_option("run", folder, "the run's folder (job.dump_folder)").required();
  app.add_option("-o,--to", to, "the page [RUN/index.html]");
  if (!app.parse(args)) return 0;
  const std::filesystem::path page =
      to.empty() ? std::filesystem::path(folder) / "index.html" : std::filesystem::path(to);
  tessera::report::write_run_page(folder, page);
  std::cout << page.string() << "\n";
  return 0;
}

const tessera::app::CommandRegistration registration{"report",
                                                     "write a training run as one HTML page", &run};

}  // namespace
