// SPDX-License-Identifier: Apache-2.0
#include "collective.hpp"

#include <exception>
#include <new>
#include <optional>

#include "tessera/base/error.hpp"
#include "tessera/base/out_of_memory.hpp"

namespace tessera::checkpoint {
namespace {

std::optional<Error> outcome_of(const std::function<void()>& work) {
  try {
    work();
    return std::nullopt;
  } catch (const Error& error) {
    return error;
  } catch (const std::exception& error) {
    if (const std::string memory = out_of_memory(error); !memory.empty())
      return Error(
          ExitCode::environment,
          fmt::format(
              "not enough memory to save or load a checkpoint ({}); start fewer ranks on each node",
              memory));
    return Error(ExitCode::environment,
                 fmt::format("saving or loading a checkpoint failed ({})", error.what()));
  }
}

std::string with_rank(const comm::Communicator& control, const Error& error) {
  return control.size() == 1 ? error.what()
                             : fmt::format("rank {}: {}", control.rank(), error.what());
}

void send_string(comm::Communicator& control, const std::string& text, int peer) {
  auto length = static_cast<std::int64_t>(text.size());
  control.group_start();
  control.send({&length, 1, DType::i64}, peer);
  control.group_end().wait();
  control.group_start();
  if (length != 0) control.send({const_cast<char*>(text.data()), length, DType::u8}, peer);
  control.group_end().wait();
}

std::string receive_string(comm::Communicator& control, int peer) {
  std::int64_t length = 0;
  control.group_start();
  control.recv({&length, 1, DType::i64}, peer);
  control.group_end().wait();
  std::string text(static_cast<std::size_t>(length), '\0');
  control.group_start();
  if (length != 0) control.recv({text.data(), length, DType::u8}, peer);
  control.group_end().wait();
  return text;
}

}  // namespace

void together(comm::Communicator& control, const std::function<void()>& work) {
  const std::optional<Error> mine = outcome_of(work);
  const std::int64_t none = control.size();
  const auto failing = static_cast<int>(comm::all_reduce_scalar(
      control, mine ? static_cast<std::int64_t>(control.rank()) : none, comm::Op::min));
  if (failing == none) return;
  const int code = mine ? static_cast<int>(mine->code()) : 0;
  const std::string text = comm::broadcast_string(
      control, mine ? fmt::format("{:03}{}", code, with_rank(control, *mine)) : "", failing);
  throw Error(static_cast<ExitCode>(std::stoi(text.substr(0, 3))), text.substr(3));
}

std::string reduce_to_root(
    comm::Communicator& control, std::string mine,
    const std::function<std::string(std::string, const std::string&)>& merge) {
  for (int distance = 1; distance < control.size(); distance *= 2) {
    if (control.rank() % (2 * distance) == distance) {
      send_string(control, mine, control.rank() - distance);
      return "";
    }
    if (control.rank() + distance < control.size())
      mine = merge(std::move(mine), receive_string(control, control.rank() + distance));
  }
  return mine;
}

}  // namespace tessera::checkpoint
