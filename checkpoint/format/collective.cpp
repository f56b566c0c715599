// SPDX-License-Identifier: Apache-2.0
#include "format/collective.hpp"

#include <utility>

namespace tessera::checkpoint {
namespace {

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
