// SPDX-License-Identifier: Apache-2.0
#include "mpi/comm/paced_communicator.hpp"

#include <time.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include "tessera/base/error.hpp"

namespace tessera::test {

using comm::Buffer;
using comm::Request;

namespace {

constexpr std::int64_t kPoll_ns = 100'000;

std::int64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

void sleep_until(std::int64_t ns) {
  const timespec until{ns / 1'000'000'000, ns % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

}  // namespace

/// One operation under way.
struct PacedCommunicator::Operation {
  Request inner, exchange;           ///< the operation itself; that of the stamps
  std::int64_t issued_ns = 0;        ///< here
  std::vector<std::int64_t> stamps;  ///< when members issued it
  std::int64_t duration_ns = 0;
  std::int64_t end_ns = 0;  ///< 0 = not known yet
  std::exception_ptr error;
};

/// MPI on the host moves on only inside of its calls, a network does so by itself: one thread of
/// the process asks for progress while operations are under way. Everything is done under one lock.
struct PacedCommunicator::Driver {
  std::mutex mutex;
  std::condition_variable work;
  std::set<PacedCommunicator*> busy;
  bool stop = false;
  std::thread thread{[this] { run(); }};

  ~Driver() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    work.notify_all();
    thread.join();
  }
  static Driver& get() {
    static Driver driver;
    return driver;
  }
  void run() {
    std::unique_lock lock(mutex);
    while (!stop) {
      work.wait(lock, [this] { return stop || !busy.empty(); });
      std::erase_if(busy, [](PacedCommunicator* communicator) { return !communicator->advance(); });
      lock.unlock();
      sleep_until(now_ns() + kPoll_ns);
      lock.lock();
    }
  }
};

class PacedCommunicator::Waiting final : public Request::State {
 public:
  Waiting(PacedCommunicator& communicator, std::shared_ptr<Operation> operation)
      : communicator_(communicator), operation_(std::move(operation)) {}
  void wait() override {
    const std::int64_t begin = now_ns();
    while (!known()) sleep_until(now_ns() + kPoll_ns / 2);
    sleep_until(operation_->end_ns);
    communicator_.traffic_.exposed_seconds += static_cast<double>(now_ns() - begin) * 1e-9;
    if (operation_->error) std::rethrow_exception(operation_->error);
  }
  bool test() override { return known() && now_ns() >= operation_->end_ns; }

 private:
  bool known() {
    const std::lock_guard lock(Driver::get().mutex);
    communicator_.advance();
    return operation_->end_ns > 0;
  }
  PacedCommunicator& communicator_;
  std::shared_ptr<Operation> operation_;
};

PacedCommunicator::PacedCommunicator(std::unique_ptr<comm::Communicator> inner, const Wire& wire)
    : Communicator(inner->rank(), inner->size(), inner->axis()),
      inner_(std::move(inner)),
      stamps_(inner_->split(0, inner_->rank(), inner_->axis() + " (stamps)")),
      wire_(wire) {}

PacedCommunicator::~PacedCommunicator() {
  const std::lock_guard lock(Driver::get().mutex);
  Driver::get().busy.erase(this);
}

bool PacedCommunicator::advance() {
  for (const auto& operation : pending_) {
    try {
      if (!operation->exchange.test() || !operation->inner.test()) {
        if (wire_.queued) break;
        continue;
      }
    } catch (...) {
      operation->error = std::current_exception();
    }
    std::int64_t begin = wire_.queued ? free_at_ns_ : 0;
    begin = std::max(begin, operation->issued_ns);
    for (const std::int64_t stamp : operation->stamps) begin = std::max(begin, stamp);
    operation->end_ns = begin + operation->duration_ns;
    free_at_ns_ = std::max(free_at_ns_, operation->end_ns);
  }
  std::erase_if(pending_, [](const auto& operation) { return operation->end_ns > 0; });
  return !pending_.empty();
}

Request PacedCommunicator::start(std::size_t stamps, Cost cost,
                                 const std::function<void(Operation&)>& issue) {
  const std::lock_guard lock(Driver::get().mutex);
  auto operation = std::make_shared<Operation>();
  operation->issued_ns = now_ns();
  operation->stamps.resize(stamps, operation->issued_ns);
  operation->duration_ns = static_cast<std::int64_t>(
      (cost.steps * wire_.latency_seconds + cost.bytes / wire_.bytes_per_second) * 1e9);
  wire_bytes_ += cost.bytes;
  issue(*operation);
  traffic_.calls = inner_->traffic().calls;
  traffic_.bytes = inner_->traffic().bytes;
  pending_.push_back(operation);
  Driver::get().busy.insert(this);
  Driver::get().work.notify_all();
  return Request(std::make_unique<Waiting>(*this, operation));
}

Request PacedCommunicator::collective(Cost cost, const std::function<Request()>& issue) {
  return start(static_cast<std::size_t>(size_), cost, [&](Operation& operation) {
    operation.exchange = stamps_->all_gather({&operation.issued_ns, 1, DType::i64},
                                             {operation.stamps.data(), size_, DType::i64});
    operation.inner = issue();
  });
}

Request PacedCommunicator::all_reduce(Buffer inout, comm::Op op) {
  return collective({2 * (size_ - 1), 2 * share(inout)},
                    [&] { return inner_->all_reduce(inout, op); });
}

Request PacedCommunicator::all_gather(Buffer in, Buffer out) {
  return collective({size_ - 1, share(out)}, [&] { return inner_->all_gather(in, out); });
}

Request PacedCommunicator::reduce_scatter(Buffer in, Buffer out, comm::Op op) {
  return collective({size_ - 1, share(in)}, [&] { return inner_->reduce_scatter(in, out, op); });
}

Request PacedCommunicator::broadcast(Buffer inout, int root) {
  return collective({size_ - 1, static_cast<double>(inout.bytes())},
                    [&] { return inner_->broadcast(inout, root); });
}

Request PacedCommunicator::all_to_all(Buffer in, Buffer out) {
  return collective({size_ - 1, share(in)}, [&] { return inner_->all_to_all(in, out); });
}

Request PacedCommunicator::all_to_all_v(Buffer in, std::span<const std::int64_t> in_counts,
                                        Buffer out, std::span<const std::int64_t> out_counts) {
  const auto travelling = [this](std::span<const std::int64_t> counts, const Buffer& buffer) {
    const std::int64_t kept = counts[static_cast<std::size_t>(rank_)];
    return static_cast<double>((buffer.count - kept) *
                               static_cast<std::int64_t>(size_of(buffer.dtype)));
  };
  return collective({size_ - 1, std::max(travelling(in_counts, in), travelling(out_counts, out))},
                    [&] { return inner_->all_to_all_v(in, in_counts, out, out_counts); });
}

void PacedCommunicator::group_start() {
  require(!group_, ExitCode::communication,
          "group_start() inside a group on axis {}; groups do not nest", axis_);
  group_.emplace();
}

void PacedCommunicator::send(Buffer in, int peer) { add({true, in, peer}); }
void PacedCommunicator::recv(Buffer out, int peer) { add({false, out, peer}); }

void PacedCommunicator::add(const Transfer& transfer) {
  require(group_.has_value(), ExitCode::communication,
          "a transfer outside of a group on axis {}; put it between group_start() and group_end()",
          axis_);
  group_->push_back(transfer);
}

Request PacedCommunicator::group_end() {
  require(group_.has_value(), ExitCode::communication,
          "group_end() without group_start() on axis {}", axis_);
  const std::vector<Transfer> transfers = std::move(*group_);
  group_.reset();
  double bytes[2] = {0, 0};  // received, sent
  for (const Transfer& transfer : transfers)
    bytes[transfer.sends] += static_cast<double>(transfer.buffer.bytes());
  return start(2 * transfers.size(), {1, std::max(bytes[0], bytes[1])}, [&](Operation& operation) {
    operation.exchange = exchange_stamps(transfers, operation);
    inner_->group_start();
    for (const Transfer& t : transfers)
      t.sends ? inner_->send(t.buffer, t.peer) : inner_->recv(t.buffer, t.peer);
    operation.inner = inner_->group_end();
  });
}

/// Both ends of a transfer learn when the other one issued it: a transfer cannot begin before.
Request PacedCommunicator::exchange_stamps(const std::vector<Transfer>& transfers,
                                           Operation& operation) {
  stamps_->group_start();
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    stamps_->send({&operation.stamps[2 * i], 1, DType::i64}, transfers[i].peer);
    stamps_->recv({&operation.stamps[2 * i + 1], 1, DType::i64}, transfers[i].peer);
  }
  return stamps_->group_end();
}

void PacedCommunicator::barrier() {
  inner_->barrier();
  sleep_until(now_ns() + static_cast<std::int64_t>(wire_.latency_seconds * 1e9));
}

std::unique_ptr<comm::Communicator> PacedCommunicator::split(int color, int key,
                                                             const std::string& axis) {
  auto part = inner_->split(color, key, axis);
  return part ? std::make_unique<PacedCommunicator>(std::move(part), wire_) : nullptr;
}

std::function<std::unique_ptr<comm::Communicator>(std::unique_ptr<comm::Communicator>)> paced(
    const Wire& wire) {
  return [wire](std::unique_ptr<comm::Communicator> inner) -> std::unique_ptr<comm::Communicator> {
    if (inner->size() == 1) return inner;
    return std::make_unique<PacedCommunicator>(std::move(inner), wire);
  };
}

}  // namespace tessera::test
