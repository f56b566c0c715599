// SPDX-License-Identifier: Apache-2.0
#include "staged_queue.hpp"

#include <algorithm>
#include <chrono>

#include "compute_stream.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/keep.hpp"
#include "tessera/comm/failure.hpp"

namespace tessera::comm {
namespace {

constexpr std::size_t kPiecesUnderWay = 2;

/// Whether the stream has come to it. The checker of the simulated GPU counts a wait, and no query,
/// as an order.
bool is_over(const Event& event) {
  if (!has_ended(event)) return false;
  check_cuda(cudaEventSynchronize(event.get()), "cudaEventSynchronize");
  return true;
}

std::exception_ptr error_of(const std::string& why) {
  return std::make_exception_ptr(Error(ExitCode::communication, why));
}

}  // namespace

StagedQueue::StagedQueue(std::unique_ptr<MpiCommunicator> carrier)
    : carrier_(std::move(carrier)), in_(communication_stream()), out_(communication_stream()) {
  thread_->run([this] { thread_->add(this, [this] { return advance(); }); });
}

StagedQueue::~StagedQueue() {
  const bool unwinds = std::uncaught_exceptions() > 0 || has_stopped_waiting();
  for (bool empty = false; !empty;) {
    thread_->run([&] {
      const std::string why = "axis " + carrier_->axis() + " was left with an operation under way";
      if (unwinds && !is_empty()) fail(why, error_of(why));
      empty = is_empty();
      if (empty) thread_->remove(this);
    });
    if (!empty) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  if (!failure_.empty()) keep_for_ever(std::move(carrier_));
  cudaStreamDestroy(in_);
  cudaStreamDestroy(out_);
}

void StagedQueue::add(std::shared_ptr<StagedOperation> operation) {
  thread_->post([this, operation = std::move(operation)] {
    if (failure_.empty()) return waiting_.push_back(operation);
    operation->fail(error_of(fmt::format("axis {} cannot be used after its first failure: {}",
                                         carrier_->axis(), failure_)));
  });
}

void StagedQueue::drop(const std::shared_ptr<StagedOperation>& operation) {
  if (operation->has_ended()) return;
  Event read, written;
  thread_->run([&] {
    if (operation->has_ended()) return;
    const std::string why = "a request on axis " + carrier_->axis() + " was left without a wait";
    fail(why, error_of(why));
    read = events_->record(in_);
    written = events_->record(out_);
  });
  for (const Event& event : {read, written})
    if (event) cudaStreamWaitEvent(compute_stream(), event.get(), 0);
}

StagingThread::Progress StagedQueue::advance() try {
  bool moved = false;
  while (land() || travel() || depart()) moved = true;
  return moved        ? StagingThread::Progress::moves
         : is_empty() ? StagingThread::Progress::idle
                      : StagingThread::Progress::waits;
} catch (const std::exception& error) {
  fail(error.what(), std::current_exception());
  return StagingThread::Progress::moves;
}

/// Starts the copies of the next piece to the host.
bool StagedQueue::depart() {
  if (waiting_.empty() || copied_.size() + travelling_.size() >= kPiecesUnderWay) return false;
  const std::shared_ptr<StagedOperation> operation = waiting_.front();
  if (operation->begun == 0)
    check_cuda(cudaStreamWaitEvent(in_, operation->ready.get(), 0), "cudaStreamWaitEvent");
  StagedPiece piece = operation->plan.piece(operation->begun);
  if (const Event& free = piece.memory.free())
    check_cuda(cudaStreamWaitEvent(in_, free.get(), 0), "cudaStreamWaitEvent");
  copy(piece.before, in_);
  copied_.push_back({operation, std::move(piece), events_->record(in_), {}});
  if (++operation->begun == operation->plan.pieces) waiting_.pop_front();
  return true;
}

/// Begins the exchange of the oldest piece that has not travelled, once it is on the host.
bool StagedQueue::travel() {
  if (copied_.empty() || !is_over(copied_.front().on_host)) return false;
  Flight flight = std::move(copied_.front());
  copied_.pop_front();
  if (flight.operation->finished == 0) flight.operation->logged.waited_for();
  travelling_.push_back(std::move(flight));
  travelling_.back().travel = travelling_.back().piece.exchange(*carrier_);
  return true;
}

/// Starts the copies of a piece to the device. Its memory is free after them.
bool StagedQueue::land() {
  const auto there =
      std::ranges::find_if(travelling_, [](Flight& flight) { return flight.travel.test(); });
  if (there == travelling_.end()) return false;
  there->travel.wait();  // which throws what it failed with
  copy(there->piece.after, out_);
  const Event on_device = events_->record(out_);
  there->piece.memory.use_until(on_device);
  const std::shared_ptr<StagedOperation> operation = there->operation;
  travelling_.erase(there);
  if (++operation->finished == operation->plan.pieces) operation->succeed(on_device);
  return true;
}

/// Ends all that is in progress. MPI may use its memory until the job ends.
void StagedQueue::fail(const std::string& why, const std::exception_ptr& error) {
  failure_ = why;
  for (auto* flights : {&copied_, &travelling_}) {
    for (const Flight& flight : *flights) flight.operation->fail(error);
    if (!flights->empty()) keep_for_ever(std::exchange(*flights, {}));
  }
  for (const auto& operation : waiting_) operation->fail(error);
  waiting_.clear();
}

void StagedQueue::copy(const std::vector<StagedCopy>& copies, cudaStream_t stream) {
  for (const StagedCopy& c : copies)
    check_cuda(cudaMemcpyAsync(c.to, c.from, c.bytes, cudaMemcpyDefault, stream),
               "cudaMemcpyAsync");
}

}  // namespace tessera::comm
