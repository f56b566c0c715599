// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <vector>

#include "arguments.hpp"
#include "device_memory.hpp"
#include "tessera/comm/communicator.hpp"

namespace tessera::comm {
namespace {

/// One rank: what it would send to itself is copied at once, so every request is complete when it
/// is returned.
class SelfCommunicator final : public Communicator {
 public:
  explicit SelfCommunicator(const std::string& axis) : Communicator(0, 1, axis) {}
  std::string_view backend() const override { return "self"; }
  Request all_reduce(Buffer, Op) override { return counted(); }
  Request all_gather(Buffer in, Buffer out) override { return copy(in, out); }
  Request reduce_scatter(Buffer in, Buffer out, Op) override { return copy(in, out); }
  Request broadcast(Buffer, int root) override {
    expect_peer(*this, root);
    return counted();
  }
  Request all_to_all(Buffer in, Buffer out) override { return copy(in, out); }
  Request all_to_all_v(Buffer in, std::span<const std::int64_t> in_counts, Buffer out,
                       std::span<const std::int64_t> out_counts) override {
    expect_counts(*this, in, in_counts);
    expect_counts(*this, out, out_counts);
    return copy(in, out);
  }
  void group_start() override {
    expect_first_group(*this, sent_.has_value());
    sent_.emplace();
    received_.clear();
  }
  void send(Buffer in, int peer) override { transfer(peer).push_back(in); }
  void recv(Buffer out, int peer) override {
    transfer(peer);
    received_.push_back(out);
  }
  Request group_end() override {
    require(sent_ && sent_->size() == received_.size(), ExitCode::communication,
            "a group on axis {} sends and receives different numbers of buffers; match each send "
            "with a recv",
            axis_);
    for (std::size_t i = 0; i < received_.size(); ++i) move_bytes((*sent_)[i], received_[i]);
    sent_.reset();
    return counted();
  }
  void barrier() override { static_cast<void>(counted()); }
  std::unique_ptr<Communicator> split(int color, int, const std::string& axis) override {
    return color < 0 ? nullptr : make_self_communicator(axis);
  }

 private:
  Request counted() {
    traffic_.calls += 1;  // and no bytes: nothing leaves this rank
    return {};
  }
  Request copy(const Buffer& in, const Buffer& out) {
    move_bytes(in, out);
    return counted();
  }
  void move_bytes(const Buffer& in, const Buffer& out) const {
    expect_sizes(*this, in, out, 1, 1);
    TESSERA_EXPECT(in.memory == out.memory,
                   "axis {}: one buffer is on the host, the other on the device", axis_);
    if (in.memory == Memory::none) return;
    if (in.memory == Memory::device) return copy_on_device(in.data, out.data, in.bytes());
    copy_part(in, out);
  }
  std::vector<Buffer>& transfer(int peer) {
    expect_peer(*this, peer);
    expect_group(*this, sent_.has_value(), "a transfer");
    return *sent_;
  }

  std::optional<std::vector<Buffer>> sent_;
  std::vector<Buffer> received_;
};

}  // namespace

std::unique_ptr<Communicator> make_self_communicator(const std::string& axis) {
  return std::make_unique<SelfCommunicator>(axis);
}

}  // namespace tessera::comm
