// SPDX-License-Identifier: Apache-2.0
// Groups of sends and receives.
#include "arguments.hpp"
#include "mpi_communicator.hpp"

namespace tessera::comm {
namespace {

constexpr int kGroupTag = 1;

}  // namespace

void MpiCommunicator::group_start() {
  expect_first_group(*this, group_.has_value());
  group_.emplace();
}

void MpiCommunicator::add_transfer(bool sends, Buffer buffer, int peer) {
  expect_memory(*this, buffer, Memory::host);
  expect_peer(*this, peer);
  expect_group(*this, group_.has_value(), sends ? "send" : "recv");
  group_->push_back({sends, peer, buffer});
}

void MpiCommunicator::send(Buffer in, int peer) { add_transfer(true, in, peer); }
void MpiCommunicator::recv(Buffer out, int peer) { add_transfer(false, out, peer); }

Request MpiCommunicator::group_end() {
  require(group_.has_value(), ExitCode::communication,
          "group_end() without group_start() on axis {}", axis_);
  const std::vector<Transfer> transfers = std::move(*group_);
  group_.reset();
  const bool strict = rules_ == Rules::strict;
  traffic_.calls += 1;
  const CallInfo info{
      ++groups_, static_cast<std::int64_t>(transfers.size()), -1, Call::group, DType::u8, Op::sum,
      0};
  auto operation = std::make_unique<MpiOperation>(
      place_, info, &traffic_, logged(info, only_peer(transfers), sent_of(transfers)));
  if (compares()) {
    operation->held();
    rendezvous_.meet_peers(info, transfers);
    operation->let_go();
  }
  for (const Transfer& t : transfers)
    if (!t.sends) operation->receive(t.buffer.data, t.buffer.bytes(), t.peer, kGroupTag);
  for (const Transfer& t : transfers) {
    if (!t.sends) continue;
    traffic_.bytes += static_cast<std::int64_t>(t.buffer.bytes());
    const auto start = strict ? &MpiOperation::send_synchronously : &MpiOperation::send;
    (operation.get()->*start)(t.buffer.data, t.buffer.bytes(), t.peer, kGroupTag);
  }
  return launch(std::move(operation));
}

}  // namespace tessera::comm
