#include "ranks.hpp"

#include <fmt/format.h>

#include <charconv>
#include <set>

namespace tessera::app {

namespace {

/// "2 message" of an error, "" of success: what ranks tell each other.
std::string outcome(const std::function<void()>& body) {
  try {
    body();
    return {};
  } catch (const Error& error) {
    return fmt::format("{} {}", static_cast<int>(error.code()), error.what());
  }
}

ExitCode code_of(const std::string& outcome) {
  int code = 0;
  std::from_chars(outcome.data(), outcome.data() + outcome.size(), code);
  return static_cast<ExitCode>(code);
}

std::string message_of(const std::string& outcome) { return outcome.substr(outcome.find(' ') + 1); }

[[noreturn]] void leave(int rank, ExitCode code, const std::string& message) {
  if (rank == 0) throw Error(code, message);
  throw Reported(code);
}

}  // namespace

config::Resolved resolve_on_ranks(comm::Communicator& control, const Args& args) {
  std::string text;
  std::string failure;
  if (control.rank() == 0) failure = outcome([&] { text = config::resolve(args).serialize(); });
  failure = comm::broadcast_string(control, failure, 0);
  if (!failure.empty()) leave(control.rank(), code_of(failure), message_of(failure));
  return config::Resolved::deserialize(comm::broadcast_string(control, text, 0));
}

void together(comm::Communicator& control, const std::function<void()>& body) {
  const std::vector<std::string> outcomes = comm::all_gather_strings(control, outcome(body));
  std::string message;
  std::string first;
  std::set<std::string> seen{""};
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    if (!seen.insert(outcomes[rank]).second) continue;
    if (first.empty()) first = outcomes[rank];
    message += fmt::format("{}{} (rank {})", message.empty() ? "" : "\n", message_of(outcomes[rank]), rank);
  }
  if (!first.empty()) leave(control.rank(), code_of(first), message);
}

}  // namespace tessera::app
