// SPDX-License-Identifier: Apache-2.0
#include "staged_communicator.hpp"

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "arguments.hpp"
#include "compute_stream.hpp"
#include "direct_mpi.hpp"
#include "staged_queue.hpp"

namespace tessera::comm {
namespace {

/// Completion of an operation: wait() holds the host until the exchange is over, and the stream
/// that computes then until the copies to the device are.
class StagedRequest final : public Request::State {
 public:
  StagedRequest(std::shared_ptr<StagedOperation> operation, StagedQueue& queue, Traffic& traffic)
      : operation_(std::move(operation)), queue_(queue), traffic_(traffic) {}
  ~StagedRequest() override {
    try {
      if (!waited_) queue_.drop(operation_);
    } catch (const Error&) {  // of the device, which has failed then
    }
  }
  void wait() override {
    waited_ = true;
    const std::int64_t begin = now_ns();
    operation_->await();
    traffic_.exposed_seconds += seconds_between(begin, now_ns());
    check_cuda(cudaStreamWaitEvent(compute_stream(), operation_->result().get(), 0),
               "cudaStreamWaitEvent");
  }
  bool test() override {
    if (!operation_->has_ended()) return false;
    const cudaError_t state = cudaEventQuery(operation_->result().get());
    if (state != cudaErrorNotReady) check_cuda(state, "cudaEventQuery");
    return state == cudaSuccess;
  }

 private:
  std::shared_ptr<StagedOperation> operation_;
  StagedQueue& queue_;
  Traffic& traffic_;
  bool waited_ = false;
};

std::unique_ptr<MpiCommunicator> carrier_of(const MpiCommunicator& host) {
  MPI_Comm made = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(host.place().comm, &made), "MPI_Comm_dup", host.place());
  return std::make_unique<MpiCommunicator>(MpiHandle(made), host.axis(), Rules::carried);
}

/// Device memory over MPI: through pinned memory, or straight where MPI takes device pointers.
/// Issuing an operation holds nobody; a thread of the process moves it on.
class StagedCommunicator final : public Communicator {
 public:
  StagedCommunicator(std::unique_ptr<MpiCommunicator> host, const StagedWay& way)
      : Communicator(host->rank(), host->size(), host->axis()),
        host_(std::move(host)),
        members_{rank_, size_, way},
        rendezvous_(host_->place()),
        queue_(carrier_of(*host_)) {}

  std::string_view backend() const override { return host_->backend(); }
  Communicator& host() override { return *host_; }

  Request all_reduce(Buffer inout, Op op) override {
    expect_memory(*this, inout, Memory::device);
    return run({0, inout.count, -1, Call::all_reduce, inout.dtype, op, 0}, {&inout, 1},
               inout.bytes(), plan_all_reduce(members_, inout, op));
  }

  Request all_gather(Buffer in, Buffer out) override {
    expect_device(in, out);
    expect_sizes(*this, in, out, size_, 1);
    return run({0, in.count, -1, Call::all_gather, in.dtype, Op::sum, 0}, {&in, 1}, in.bytes(),
               members_.way.direct ? plan_direct_all_gather(members_, in, out)
                                   : plan_all_gather(members_, in, out));
  }

  Request reduce_scatter(Buffer in, Buffer out, Op op) override {
    expect_device(in, out);
    expect_sizes(*this, in, out, 1, size_);
    return run({0, in.count, -1, Call::reduce_scatter, in.dtype, op, 0}, {&in, 1}, in.bytes(),
               plan_reduce_scatter(members_, in, out, op));
  }

  Request broadcast(Buffer inout, int root) override {
    expect_memory(*this, inout, Memory::device);
    expect_peer(*this, root);
    return run({0, inout.count, root, Call::broadcast, inout.dtype, Op::sum, 0},
               {&inout, rank_ == root ? std::size_t{1} : 0}, rank_ == root ? inout.bytes() : 0,
               members_.way.direct ? plan_direct_broadcast(inout, root)
                                   : plan_broadcast(members_, inout, root));
  }

  Request all_to_all(Buffer in, Buffer out) override {
    TESSERA_EXPECT(in.count % size_ == 0, "axis {} of {} ranks: {} elements do not divide", axis_,
                   size_, in.count);
    expect_device(in, out);
    expect_sizes(*this, in, out, 1, 1);
    const std::vector<std::int64_t> counts(static_cast<std::size_t>(size_), in.count / size_);
    return run({0, in.count, -1, Call::all_to_all, in.dtype, Op::sum, 0}, {&in, 1}, in.bytes(),
               members_.way.direct ? plan_direct_group(pairwise(in, counts, out, counts))
                                   : plan_all_to_all(members_, in, out));
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
    return run({0, in.count, -1, Call::all_to_all_v, in.dtype, Op::sum, 0}, {&in, 1}, in.bytes(),
               plan_of(pairwise(in, in_counts, out, out_counts)), {in_counts, out_counts});
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
    const CallInfo info{
        ++groups_, static_cast<std::int64_t>(transfers.size()), -1, Call::group, DType::u8, Op::sum,
        0};
    std::size_t sent_bytes = 0;
    for (const Transfer& t : transfers) sent_bytes += t.sends ? t.buffer.bytes() : 0;
    return issue(info, sent_of(transfers), sent_bytes, only_peer(transfers), plan_of(transfers),
                 [&] { rendezvous_.meet_peers(info, transfers); });
  }

  /// On the host: members meet, and none of their streams is held.
  void barrier() override { host_->barrier(); }

  std::unique_ptr<Communicator> split(int color, int key, const std::string& axis) override {
    std::unique_ptr<Communicator> part = host_->split(color, key, axis);
    if (!part) return nullptr;
    std::unique_ptr<MpiCommunicator> companion(static_cast<MpiCommunicator*>(part.release()));
    return std::make_unique<StagedCommunicator>(std::move(companion), members_.way);
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

  StagedPlan plan_of(const std::vector<Transfer>& transfers) const {
    return members_.way.direct ? plan_direct_group(transfers) : plan_group(members_, transfers);
  }

  Request run(CallInfo info, std::span<const Buffer> in, std::size_t sent_bytes, StagedPlan plan,
              const PairCounts& counts = {}) {
    expect_no_group(*this, group_.has_value(), info.call);
    info.sequence = ++sequence_;
    return issue(info, in, sent_bytes, -1, std::move(plan),
                 [&] { rendezvous_.meet_all(info, counts); });
  }

  /// `meet` compares what the members called, where that is asked for.
  template <class Meet>
  Request issue(const CallInfo& info, std::span<const Buffer> in, std::size_t sent_bytes, int peer,
                StagedPlan plan, Meet meet) {
    traffic_.calls += 1;
    traffic_.bytes += static_cast<std::int64_t>(sent_bytes);
    LoggedCall logged(info, rank_, size_, axis_, host_->place().members, peer, in);
    try {
      if (is_strict() || check_collectives()) {
        logged.waited_for();
        meet();
        logged.resumed();
      }
      return issue(info, std::move(plan), logged);
    } catch (...) {
      logged.failed();
      throw;
    }
  }

  Request issue(const CallInfo& info, StagedPlan plan, LoggedCall& logged) {
    if (plan.pieces == 0) {
      logged.done();
      return {};
    }
    auto operation = std::make_shared<StagedOperation>(std::move(plan), logged,
                                                       events_->record(compute_stream()));
    queue_.add(operation);
    if (is_strict()) await_strictly(info, *operation);
    return Request(std::make_unique<StagedRequest>(std::move(operation), queue_, traffic_));
  }

  /// Strict operations are over, but for the copies to the device, when their call returns.
  void await_strictly(const CallInfo& info, StagedOperation& operation) {
    const double seconds = strict_timeout_seconds();
    const auto begin = std::chrono::steady_clock::now();
    const bool ended = operation.await(begin + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                                   std::chrono::duration<double>(seconds)));
    traffic_.exposed_seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (ended) return;
    const std::string why = fmt::format(
        "{} on axis {} (rank {} of {}) did not complete within {:g} s after all members had joined "
        "it; "
        "another rank has failed; see its message",
        describe(info), axis_, rank_, size_, seconds);
    rendezvous_.give_up(why);
    throw Error(ExitCode::communication, why);
  }

  bool is_strict() const { return host_->rules() == Rules::strict; }

  std::unique_ptr<MpiCommunicator> host_;
  StagedMembers members_;
  std::shared_ptr<EventPool> events_ = std::make_shared<EventPool>();
  std::uint64_t sequence_ = 0, groups_ = 0;
  std::optional<std::vector<Transfer>> group_;
  Rendezvous rendezvous_;
  StagedQueue queue_;  ///< first to go: what it has in progress uses the others
};

constexpr std::int64_t kUsualPiece_bytes = std::int64_t{8} << 20;

std::int64_t wanted_piece_bytes() {
  const char* set = std::getenv("TESSERA_STAGING_BYTES");
  if (!set) return kUsualPiece_bytes;
  const std::string_view text = set;
  std::int64_t bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  require(error == std::errc() && end == text.data() + text.size() && bytes >= 1024,
          ExitCode::usage,
          "TESSERA_STAGING_BYTES is \"{}\"; set it to a number of bytes, at least 1024", text);
  return bytes;
}

/// What all members can do.
StagedWay agree(MpiCommunicator& host) {
  const std::int64_t bytes = all_reduce_scalar(host, wanted_piece_bytes(), Op::min);
  const std::int64_t direct =
      all_reduce_scalar(host, std::int64_t{mpi_takes_device_memory()}, Op::min);
  return {direct == 1, static_cast<std::size_t>(bytes)};
}

}  // namespace

std::unique_ptr<Communicator> make_staged_communicator(std::unique_ptr<MpiCommunicator> host) {
  int devices = 0;
  require(cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0, ExitCode::environment,
          "no GPU can be seen on this node; check `nvidia-smi` and CUDA_VISIBLE_DEVICES, or train "
          "on the host with "
          "job.device = \"cpu\"");
  const StagedWay way = agree(*host);
  return std::make_unique<StagedCommunicator>(std::move(host), way);
}

}  // namespace tessera::comm
