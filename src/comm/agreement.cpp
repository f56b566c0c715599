// SPDX-License-Identifier: Apache-2.0
#include "tessera/comm/agreement.hpp"

#include <exception>
#include <optional>
#include <string_view>

#include "tessera/base/error.hpp"
#include "tessera/base/file_trouble.hpp"
#include "tessera/base/out_of_memory.hpp"

namespace tessera::comm {
namespace {

Error as_error(const std::exception& error) {
  if (const std::string file = file_trouble(error); !file.empty())
    return {ExitCode::environment, file};
  if (const std::string memory = out_of_memory(error); !memory.empty())
    return {ExitCode::environment,
            fmt::format("not enough memory ({}); {}", memory,
                        memory_advice("use fewer ranks on each node or a smaller job"))};
  return {ExitCode::environment, error.what()};
}

std::optional<Error> outcome_of(const std::function<void()>& work) {
  try {
    work();
    return std::nullopt;
  } catch (const Error& error) {
    return error;
  } catch (const std::exception& error) {
    return as_error(error);
  }
}

/// Three digits of the exit code, and the text: a message, or with code 0 a result.
std::string encoded(const std::optional<Error>& error, const std::string& result = {}) {
  return error ? fmt::format("{:03}{}", static_cast<int>(error->code()), error->what())
               : "000" + result;
}

/// The result. Throws the Error, with `prefix` before its text.
std::string decoded(const std::string& text, std::string_view prefix) {
  const int code = std::stoi(text.substr(0, 3));
  if (code == 0) return text.substr(3);
  throw Error(static_cast<ExitCode>(code), fmt::format("{}{}", prefix, text.substr(3)));
}

}  // namespace

void on_all_ranks(Communicator& control, const std::function<void()>& work) {
  const std::optional<Error> mine = outcome_of(work);
  const std::int64_t none = control.size();
  const auto lowest = static_cast<int>(
      all_reduce_scalar(control, mine ? static_cast<std::int64_t>(control.rank()) : none, Op::min));
  if (lowest == none) return;
  const bool all_failed = all_reduce_scalar(control, std::int64_t{mine ? 1 : 0}) == control.size();
  decoded(broadcast_string(control, encoded(mine), lowest),
          all_failed ? "" : fmt::format("rank {}: ", lowest));
}

std::string on_rank_zero(Communicator& control, const std::function<std::string()>& work) {
  std::string result, text;
  if (control.rank() == 0) {
    const std::optional<Error> error = outcome_of([&] { result = work(); });
    text = encoded(error, result);
  }
  return decoded(broadcast_string(control, text, 0), "");
}

}  // namespace tessera::comm
