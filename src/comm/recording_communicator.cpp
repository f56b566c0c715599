// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"
#include "device_memory.hpp"
#include "tessera/comm/communicator.hpp"

namespace tessera::comm {
namespace {

/// Rank `rank` of a job that is not running: counts what would be sent, and takes the others for
/// ranks that give what this one gives. What only they know arrives as zeros.
class RecordingCommunicator final : public Communicator {
 public:
  RecordingCommunicator(int rank, int size, const std::string& axis)
      : Communicator(rank, size, axis) {
    TESSERA_EXPECT(size > 0 && rank >= 0 && rank < size, "rank {} of {} on axis {}", rank, size,
                   axis);
  }
  std::string_view backend() const override { return "recording"; }

  Request all_reduce(Buffer inout, Op) override { return count(inout.bytes()); }
  Request all_gather(Buffer in, Buffer out) override {
    expect_sizes(*this, in, out, size_, 1);
    for (int r = 0; r < size_; ++r) keep(in, out.part(r * in.count, in.count));
    return count(in.bytes());
  }
  Request reduce_scatter(Buffer in, Buffer out, Op) override {
    expect_sizes(*this, in, out, 1, size_);
    keep(in.part(rank_ * out.count, out.count), out);
    return count(in.bytes());
  }
  Request broadcast(Buffer inout, int root) override {
    expect_peer(*this, root);
    return count(rank_ == root ? inout.bytes() : 0);
  }
  Request all_to_all(Buffer in, Buffer out) override {
    expect_sizes(*this, in, out, 1, 1);
    const std::int64_t part = in.count / size_;
    for (int r = 0; r < size_; ++r) keep(in.part(rank_ * part, part), out.part(r * part, part));
    return count(in.bytes());
  }
  Request all_to_all_v(Buffer in, std::span<const std::int64_t> in_counts, Buffer out,
                       std::span<const std::int64_t> out_counts) override {
    expect_counts(*this, in, in_counts);
    expect_counts(*this, out, out_counts);
    clear(out);
    keep(own_part(in, in_counts), own_part(out, out_counts));
    return count(in.bytes());
  }
  void group_start() override {
    expect_first_group(*this, in_group_);
    in_group_ = true;
  }
  void send(Buffer in, int peer) override {
    expect_transfer(peer);
    traffic_.bytes += static_cast<std::int64_t>(in.bytes());
  }
  void recv(Buffer out, int peer) override {
    expect_transfer(peer);
    clear(out);
  }
  Request group_end() override {
    require(in_group_, ExitCode::communication, "group_end() without group_start() on axis {}",
            axis_);
    in_group_ = false;
    static_cast<void>(count(0));
    ++*groups_;
    return Request(std::make_unique<Group>(groups_));
  }
  void barrier() override { static_cast<void>(count(0)); }
  std::unique_ptr<Communicator> split(int, int, const std::string& axis) override {
    fail(ExitCode::communication,
         "axis {} is only rehearsed and cannot be split into {}: its other members do not exist; "
         "make each part with "
         "make_recording_communicator()",
         axis_, axis);
  }

 private:
  /// Its peers have taken part when this rank comes with the next one, or waits.
  class Group final : public Request::State {
   public:
    explicit Group(std::shared_ptr<const std::int64_t> groups)
        : groups_(std::move(groups)), own_(*groups_) {}
    void wait() override {}
    bool test() override { return *groups_ > own_; }

   private:
    std::shared_ptr<const std::int64_t> groups_;
    std::int64_t own_;
  };

  Request count(std::size_t bytes) {
    traffic_.calls += 1;
    traffic_.bytes += static_cast<std::int64_t>(bytes);
    return {};
  }
  Buffer own_part(const Buffer& buffer, std::span<const std::int64_t> counts) const {
    const auto rank = static_cast<std::size_t>(rank_);
    return buffer.part(std::accumulate(counts.begin(), counts.begin() + rank_, std::int64_t{0}),
                       counts[rank]);
  }
  void keep(const Buffer& from, const Buffer& to) const {
    if (from.memory == Memory::none) return;
    if (from.memory == Memory::device) return copy_on_device(from.data, to.data, from.bytes());
    copy_part(from, to);
  }
  static void clear(const Buffer& out) {
    if (out.memory == Memory::host && out.count > 0) std::memset(out.data, 0, out.bytes());
  }
  void expect_transfer(int peer) const {
    expect_peer(*this, peer);
    expect_group(*this, in_group_, "a transfer");
  }

  bool in_group_ = false;
  std::shared_ptr<std::int64_t> groups_ = std::make_shared<std::int64_t>(0);
};

}  // namespace

std::unique_ptr<Communicator> make_recording_communicator(int rank, int size,
                                                          const std::string& axis) {
  return std::make_unique<RecordingCommunicator>(rank, size, axis);
}

}  // namespace tessera::comm
