// SPDX-License-Identifier: Apache-2.0
// tessera --version [--json]: the program, what it was built with, and what it runs with.
#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "build_facts.hpp"
#include "command.hpp"
#include "tensor_commands.hpp"
#include "tessera/base/json.hpp"

namespace {

using tessera::app::Args;

void print_text() {
  std::cout << fmt::format("tessera {} ({})\n", tessera::app::kVersion, tessera::app::kCommit);
  std::cout << "built with:\n";
  for (const auto& fact : tessera::app::kBuildFacts)
    std::cout << fmt::format("  {:<11} {}\n", fact.name, fact.value);
  if (!tessera::app::runtime_facts().empty()) std::cout << "running with:\n";
  for (const auto& fact : tessera::app::runtime_facts())
    if (const std::string value = fact.value(); !value.empty())
      std::cout << fmt::format("  {:<11} {}\n", fact.name, value);
}

void print_json() {
  nlohmann::ordered_json json{{"version", tessera::app::kVersion},
                              {"commit", tessera::app::kCommit}};
  for (const auto& fact : tessera::app::kBuildFacts) json["build"][fact.name] = fact.value;
  json["run"] = nlohmann::ordered_json::object();
  for (const auto& fact : tessera::app::runtime_facts())
    if (const std::string value = fact.value(); !value.empty()) json["run"][fact.name] = value;
  std::cout << tessera::json_text(json, 2) << "\n";
}

int run(const Args& args) {
  if (tessera::app::asks_for_help(args))
    std::cout << "Usage: tessera --version [--json]\n";
  else if (args.empty())
    print_text();
  else if (args == Args{"--json"})
    print_json();
  else
    tessera::fail(tessera::ExitCode::usage, "--version takes --json or nothing, not '{}'",
                  args.front());
  return 0;
}

const tessera::app::CommandRegistration registration{tessera::app::kShowVersion.name,
                                                     tessera::app::kShowVersion.summary, &run};

}  // namespace
