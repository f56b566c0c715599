// SPDX-License-Identifier: Apache-2.0
#include "nccl_communicator.hpp"

#include <exception>
#include <optional>
#include <tuple>

#include "arguments.hpp"
#include "compute_stream.hpp"
#include "device_events.hpp"
#include "device_hooks.hpp"
#include "device_waits.hpp"
#include "nccl_handle.hpp"
#include "nccl_memory.hpp"
#include "nccl_requests.hpp"
#include "nccl_types.hpp"
#include "tessera/base/keep.hpp"
#include "tessera/base/log.hpp"
#include "tessera/comm/failure.hpp"

namespace tessera::comm {
namespace {

/// Device memory over NCCL, on a stream of its own with the highest priority. Issuing an operation
/// makes that stream wait for the caller's compute stream; waiting for its request makes the
/// compute stream wait for it. The host is never held.
class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(std::shared_ptr<NcclHandle> nccl, std::unique_ptr<MpiCommunicator> host)
      : Communicator(host->rank(), host->size(), host->axis()),
        host_(std::move(host)),
        nccl_(std::move(nccl)),
        stream_(communication_stream()),
        rendezvous_(host_->place()),
        registered_(std::make_shared<RegisteredMemory>(nccl_)),
        pending_(nccl_) {}
  ~NcclCommunicator() override {
    // Peers would notice an abort before this rank has said why it fails.
    const bool stays = std::uncaught_exceptions() > 0 && !has_stopped_waiting();
    if (nccl_->flushes()) cudaStreamSynchronize(stream_);
    try {
      registered_->end();
      stays ? void(keep_for_ever(nccl_)) : nccl_->finish();
    } catch (const Error& error) {
      log::warning("{}", error.what());
    }
    cudaStreamDestroy(stream_);
  }

  std::string_view backend() const override { return "nccl"; }
  Communicator& host() override { return *host_; }

  Request all_reduce(Buffer inout, Op op) override {
    expect_memory(*this, inout, Memory::device);
    const ncclDataType_t type = type_of(inout.dtype);
    return run(Call::all_reduce, inout, inout.bytes(), op, -1, [&](ncclComm_t c) {
      return ncclAllReduce(inout.data, inout.data, static_cast<std::size_t>(inout.count), type,
                           operation_of(op), c, stream_);
    });
  }

  Request all_gather(Buffer in, Buffer out) override {
    expect_device(in, out);
    expect_sizes(*this, in, out, size_, 1);
    return run(Call::all_gather, in, in.bytes(), Op::sum, -1, [&](ncclComm_t c) {
      return ncclAllGather(in.data, out.data, in.bytes(), ncclUint8, c, stream_);
    });
  }

  Request reduce_scatter(Buffer in, Buffer out, Op op) override {
    expect_device(in, out);
    expect_sizes(*this, in, out, 1, size_);
    const ncclDataType_t type = type_of(in.dtype);
    return run(Call::reduce_scatter, in, in.bytes(), op, -1, [&](ncclComm_t c) {
      return ncclReduceScatter(in.data, out.data, static_cast<std::size_t>(out.count), type,
                               operation_of(op), c, stream_);
    });
  }

  Request broadcast(Buffer inout, int root) override {
    expect_memory(*this, inout, Memory::device);
    expect_peer(*this, root);
    return run(Call::broadcast, inout, rank_ == root ? inout.bytes() : 0, Op::sum, root,
               [&](ncclComm_t c) {
                 return ncclBroadcast(inout.data, inout.data, inout.bytes(), ncclUint8, root, c,
                                      stream_);
               });
  }

  Request all_to_all(Buffer in, Buffer out) override {
    TESSERA_EXPECT(in.count % size_ == 0, "axis {} of {} ranks: {} elements do not divide", axis_,
                   size_, in.count);
    expect_device(in, out);
    expect_sizes(*this, in, out, 1, 1);
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
    const std::size_t part_bytes = in.bytes() / static_cast<std::size_t>(size_);
    return run(Call::all_to_all, in, in.bytes(), Op::sum, -1, [&](ncclComm_t c) {
      return ncclAlltoAll(in.data, out.data, part_bytes, ncclUint8, c, stream_);
    });
#else
    const std::vector<std::int64_t> counts(static_cast<std::size_t>(size_), in.count / size_);
    return exchange(Call::all_to_all, in, counts, out, counts);
#endif
  }

  Request all_to_all_v(Buffer in, std::span<const std::int64_t> in_counts, Buffer out,
                       std::span<const std::int64_t> out_counts) override {
    expect_device(in, out);
    expect_counts(*this, in, in_counts);
    expect_counts(*this, out, out_counts);
    TESSERA_EXPECT(in.dtype == out.dtype, "axis {}: in is {}, out is {}", axis_, name_of(in.dtype),
                   name_of(out.dtype));
    TESSERA_EXPECT(
        in_counts[static_cast<std::size_t>(rank_)] == out_counts[static_cast<std::size_t>(rank_)],
        "axis {}: rank {} sends itself another count than it expects", axis_, rank_);
    return exchange(Call::all_to_all_v, in, in_counts, out, out_counts);
  }

  void group_start() override {
    expect_first_group(*this, group_.has_value());
    group_.emplace();
  }
  void send(Buffer in, int peer) override { add_transfer(true, in, peer); }
  void recv(Buffer out, int peer) override { add_transfer(false, out, peer); }
  Request group_end() override {
    require(group_.has_value(), ExitCode::communication,
            "group_end() without group_start() on axis {}", axis_);
    const std::vector<Transfer> transfers = std::move(*group_);
    group_.reset();
    const CallInfo info{++groups_, std::ssize(transfers), -1, Call::group, DType::u8, Op::sum, 0};
    if (check_collectives()) rendezvous_.meet_peers(info, transfers);
    std::size_t sent_bytes = 0;
    for (const Transfer& t : transfers) sent_bytes += t.sends ? t.buffer.bytes() : 0;
    return issue(
        info, sent_of(transfers), sent_bytes,
        [&] { nccl_->enqueue_group([&](ncclComm_t c) { return post(transfers, c); }); },
        only_peer(transfers));
  }

  /// NCCL registers buffers of graphs itself, and a capture cannot allocate.
  std::shared_ptr<void> registered_memory(std::size_t bytes,
                                          const std::function<void()>& make_room) override {
    if (is_captured(compute_stream())) return nullptr;
    if (auto piece = registered_->reuse(bytes)) return piece;
    const CallInfo info{++sequence_, static_cast<std::int64_t>(bytes), -1, Call::register_memory};
    if (check_collectives()) rendezvous_.meet_all(info, {});
    LoggedCall logged(info, rank_, size_, axis_, host_->place().members);
    return registered_->add(bytes, make_room, logged);
  }

  /// On the host: members meet, and none of their streams is held.
  void barrier() override { host_->barrier(); }

  std::unique_ptr<Communicator> split(int color, int key, const std::string& axis) override {
    auto part = host_->split(color, key, axis);
    const Place place = part ? static_cast<MpiCommunicator&>(*part).place() : Place{};
    LoggedCall logged(CallInfo{++sequence_, 0, -1, Call::split, DType::u8, Op::sum, 0}, rank_,
                      size_, axis_, host_->place().members);
    logged.waited_for();
    // NCCL's splits communicate, and may wait for an operation that waits for them.
    check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    auto nccl = nccl_->split(color, key, place);
    logged.done();
    if (!part) return nullptr;
    std::unique_ptr<MpiCommunicator> companion(static_cast<MpiCommunicator*>(part.release()));
    return std::make_unique<NcclCommunicator>(std::move(nccl), std::move(companion));
  }

 private:
  void expect_device(const Buffer& in, const Buffer& out) const {
    expect_memory(*this, in, Memory::device);
    expect_memory(*this, out, Memory::device);
  }

  void add_transfer(bool sends, const Buffer& buffer, int peer) {
    expect_memory(*this, buffer, Memory::device);
    expect_peer(*this, peer);
    expect_group(*this, group_.has_value(), sends ? "send" : "recv");
    group_->push_back({sends, peer, buffer});
  }

  ncclResult_t post(std::span<const Transfer> transfers, ncclComm_t comm) const {
    for (const Transfer& t : transfers) {
      const ncclResult_t result =
          t.sends ? ncclSend(t.buffer.data, t.buffer.bytes(), ncclUint8, t.peer, comm, stream_)
                  : ncclRecv(t.buffer.data, t.buffer.bytes(), ncclUint8, t.peer, comm, stream_);
      if (result != ncclSuccess) return result;
    }
    return ncclSuccess;
  }

  Request exchange(Call call, const Buffer& in, std::span<const std::int64_t> in_counts,
                   const Buffer& out, std::span<const std::int64_t> out_counts) {
    expect_no_group(*this, group_.has_value(), call);
    const std::vector<Transfer> transfers = pairwise(in, in_counts, out, out_counts);
    const CallInfo info{++sequence_, in.count, -1, call, in.dtype, Op::sum, 0};
    if (check_collectives()) rendezvous_.meet_all(info, {in_counts, out_counts});
    return issue(info, std::span(&in, 1), in.bytes(),
                 [&] { nccl_->enqueue_group([&](ncclComm_t c) { return post(transfers, c); }); });
  }

  template <class Work>
  Request run(Call call, const Buffer& buffer, std::size_t sent_bytes, Op op, int root, Work work) {
    const CallInfo info{++sequence_, buffer.count, root, call, buffer.dtype, op, 0};
    expect_no_group(*this, group_.has_value(), call);
    if (check_collectives()) rendezvous_.meet_all(info, {});
    const bool reads = root < 0 || root == rank_;
    return issue(info, std::span(&buffer, reads ? 1 : 0), sent_bytes,
                 [&] { nccl_->enqueue(name_of(call).data(), work); });
  }

  /// Runs `enqueue` between the compute stream's present end and an event that the request waits
  /// for.
  template <class Enqueue>
  Request issue(const CallInfo& info, std::span<const Buffer> in, std::size_t sent_bytes,
                Enqueue enqueue, int peer = -1) {
    traffic_.calls += 1;
    traffic_.bytes += static_cast<std::int64_t>(sent_bytes);
    LoggedCall logged(info, rank_, size_, axis_, host_->place().members, peer, in);
    try {
      return issue(logged, enqueue);
    } catch (...) {
      logged.failed();
      throw;
    }
  }

  template <class Enqueue>
  Request issue(LoggedCall& logged, Enqueue& enqueue) {
    const cudaStream_t compute = compute_stream();
    const Event ready = events_->record(compute);
    check_cuda(cudaStreamWaitEvent(stream_, ready.get(), 0), "cudaStreamWaitEvent");
    Event begun = events_->record(stream_);
    logged.waited_for();  // the first use of a connection waits for the peer on the host
    enqueue();
    logged.resumed();
    Event done = events_->record(stream_);
    const bool captured = is_captured(compute);
    if (captured) {
      ++captured_;
      logged.done();  // for the host
    } else {
      pending_.add(logged, std::move(begun), done);
    }
    return Request(std::make_unique<DeviceRequest>(nccl_, waits_, std::move(done), captured));
  }

  void begin_graph() {
    captured_ = 0;
    waits_->forget_captured();
    before_graph_ = {sequence_, groups_, traffic_};
  }

  /// Ranks may have come to different places of it, this one into a group.
  void abandon_graph() {
    group_.reset();
    std::tie(sequence_, groups_, traffic_) = before_graph_;
    begin_graph();
  }

  /// The stream that computes was just given what has been captured.
  void watch_graph() {
    if (captured_ == 0) return;
    const CallInfo info{++sequence_, captured_, -1, Call::graph, DType::u8, Op::sum, 0};
    LoggedCall logged(info, rank_, size_, axis_, host_->place().members);
    logged.waited_for();
    const Event end = events_->record(compute_stream());
    waits_->launched(end);
    pending_.add(logged, end, end);
  }

  std::unique_ptr<MpiCommunicator> host_;
  std::shared_ptr<NcclHandle> nccl_;
  cudaStream_t stream_;
  std::shared_ptr<EventPool> events_ = std::make_shared<EventPool>();
  std::uint64_t sequence_ = 0, groups_ = 0;
  std::optional<std::vector<Transfer>> group_;
  Rendezvous rendezvous_;
  std::shared_ptr<RegisteredMemory> registered_;  ///< tensors may outlive the communicator
  std::shared_ptr<DeviceWaits> waits_ = std::make_shared<DeviceWaits>();
  std::int64_t captured_ = 0;  ///< calls that are parts of the graph; the host sees none of them
  std::tuple<std::uint64_t, std::uint64_t, Traffic> before_graph_;  ///< the numbers of calls
  const DeviceHooks hooks_{
      {.graph_begins = [this] { begin_graph(); },
       .graph_abandoned = [this] { abandon_graph(); },
       .graph_launched = [this] { watch_graph(); },
       .collect_waits = [this] { traffic_.exposed_seconds += waits_->take(); }}};
  PendingOperations pending_;  ///< first to go: the watchdog looks at it
};

}  // namespace

std::unique_ptr<Communicator> make_nccl_communicator(std::unique_ptr<MpiCommunicator> host,
                                                     int ranks_per_id) {
  auto nccl = join_nccl(*host, ranks_per_id);
  return std::make_unique<NcclCommunicator>(std::move(nccl), std::move(host));
}

}  // namespace tessera::comm
