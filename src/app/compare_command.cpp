// SPDX-License-Identifier: Apache-2.0
// tessera compare RUN RUN...: results, settings and curves of runs, compared.
#include <iostream>

#include "command.hpp"
#include "command_line.hpp"
#include "tessera/base/atomic_file.hpp"
#include "tessera/report/comparison.hpp"

namespace {

int run(const tessera::app::Args& args) {
  std::vector<std::string> folders;
  std::string to;
  double percent = 1;
  tessera::app::Flags app(
      "Compares training runs: losses and throughput, settings that differ, and the first step at "
      "which the losses "
      "differ from those of the first run.",
      "compare");
  app.add_option("run", folders, "two or more folders of runs (job.dump_folder)").required();
  app.add_option("--tolerance", percent,
                 "difference of the loss, in percent, that counts as diverged")
      .show_default()
      .at_least(0);
  app.add_option("-o,--to", to, "also write an HTML page with the curves of all runs in one chart");
  if (!app.parse(args)) return 0;
  tessera::require(folders.size() >= 2, tessera::ExitCode::usage,
                   "there is only one run; name two or more");
  std::vector<tessera::report::TrainingRun> runs;
  for (const std::string& folder : folders) runs.push_back(tessera::report::read_run(folder));
  std::cout << tessera::report::comparison_text(runs, percent / 100);
  if (!to.empty())
    tessera::write_file_atomically(to, tessera::report::comparison_page(runs, percent / 100, to));
  return 0;
}

const tessera::app::CommandRegistration registration{"compare", "compare training runs", &run};

}  // namespace
