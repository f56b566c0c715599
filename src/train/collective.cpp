// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/collective.hpp"

#include "tessera/base/error.hpp"
#include "tessera/base/file_trouble.hpp"
#include "tessera/base/out_of_memory.hpp"

namespace tessera::train {
namespace {

/// "" if `work` did well, else the exit code and the message.
std::string outcome_of(const std::function<void()>& work) {
  try {
    work();
    return {};
  } catch (const Error& error) {
    return std::to_string(static_cast<int>(error.code())) + " " + error.what();
  } catch (const std::exception& error) {
    const std::string file = file_trouble(error), what = file.empty() ? out_of_memory(error) : file;
    if (what.empty()) throw;
    return std::to_string(static_cast<int>(ExitCode::environment)) + " " + what;
  }
}

[[noreturn]] void rethrow(const std::string& outcome) {
  const std::size_t space = outcome.find(' ');
  throw Error(static_cast<ExitCode>(std::stoi(outcome.substr(0, space))),
              outcome.substr(space + 1));
}

}  // namespace

std::string on_rank_zero(comm::Communicator& control, const std::function<std::string()>& work) {
  std::string text, outcome;
  if (control.rank() == 0) outcome = outcome_of([&] { text = work(); });
  outcome = comm::broadcast_string(control, outcome, 0);
  if (!outcome.empty()) rethrow(outcome);
  return comm::broadcast_string(control, text, 0);
}

void on_all_ranks(comm::Communicator& control, const std::function<void()>& work) {
  for (const std::string& outcome : comm::all_gather_strings(control, outcome_of(work)))
    if (!outcome.empty()) rethrow(outcome);
}

}  // namespace tessera::train
