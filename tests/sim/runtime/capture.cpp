// SPDX-License-Identifier: Apache-2.0
#include "capture.hpp"

#include <algorithm>
#include <utility>

#include "device_memory.hpp"
#include "issue.hpp"

namespace tessera::cudart {
namespace {

/// In progress; guarded by the issue lock.
std::vector<std::weak_ptr<Capture>>& captures() {
  static auto& list = *new std::vector<std::weak_ptr<Capture>>;
  return list;
}
std::uint64_t last_id = 0;  ///< guarded by the issue lock

thread_local cudaStreamCaptureMode mode_of_thread = cudaStreamCaptureModeGlobal;
thread_local bool launching = false;

/// Does the capture forbid this thread's unsafe calls?
bool forbids(const Capture& capture) {
  if (mode_of_thread == cudaStreamCaptureModeRelaxed ||
      capture.mode() == cudaStreamCaptureModeRelaxed)
    return false;
  if (capture.is_of_this_thread()) return true;
  return mode_of_thread == cudaStreamCaptureModeGlobal &&
         capture.mode() == cudaStreamCaptureModeGlobal;
}

/// "" where all of it is memory.
std::string freed_operand(const std::string& what, std::span<const sim::Access> accesses) {
  for (const sim::Access& access : accesses)
    if (access.bytes > 0 && sim::is_device_pointer(access.data) &&
        DeviceMemory::get().find(access.data).bytes == 0)
      return what + " of a graph uses device memory that was freed after the capture";
  return {};
}

}  // namespace

Replay::Replay(std::vector<cudaStream_t> handles, std::size_t records)
    : handles_(std::move(handles)), records_(records) {}

std::shared_ptr<Stream> Replay::stream(std::size_t branch) const {
  return Runtime::get().find_stream(handles_[branch]);
}

Capture::Capture(cudaStreamCaptureMode mode, std::uint64_t id) : mode_(mode), id_(id) {}

void Capture::join(Stream& stream) {
  stream.branch = {shared_from_this(), known_.size()};
  streams_.push_back(stream.weak_from_this());
  known_.emplace_back();
}

void Capture::add(std::size_t branch, Step step) { add(std::span(&branch, 1), std::move(step)); }

void Capture::add(std::span<const std::size_t> branches, Step step) {
  Clock after;
  for (const std::size_t branch : branches) {
    known_[branch].advance(static_cast<std::uint32_t>(branch));
    after.merge(known_[branch]);
  }
  for (const std::size_t branch : branches) known_[branch] = after;
  steps_.push_back(std::move(step));
}

std::shared_ptr<Record> Capture::record(std::size_t branch) {
  const std::size_t number = records_++;
  steps_.emplace_back([branch, number](Replay& replay) {
    replay.record(number) = cudart::record(*replay.stream(branch));
    return cudaSuccess;
  });
  return std::make_shared<Record>(CapturedEnd{true, weak_from_this(), number, known_[branch]});
}

void Capture::wait(std::size_t branch, const CapturedEnd& end) {
  known_[branch].merge(end.known);
  steps_.emplace_back([branch, number = end.number](Replay& replay) {
    return cudart::wait(*replay.stream(branch), replay.record(number));
  });
}

cudaError_t Capture::invalidate(cudaError_t error, const std::string& why) {
  if (std::exchange(valid_, false)) print_line("a stream capture ends: " + why);
  return error;
}

bool Capture::is_joined() const {
  return std::ranges::all_of(known_, [this](const Clock& each) { return known_[0].covers(each); });
}

void Capture::end() {
  in_progress_ = false;
  for (const auto& each : streams_)
    if (const auto stream = each.lock()) stream->branch = {};
  std::erase_if(captures(), [this](const auto& each) {
    const auto capture = each.lock();
    return !capture || capture.get() == this;
  });
}

GraphExec::GraphExec(std::shared_ptr<const Capture> captured) : captured_(std::move(captured)) {
  for (std::size_t branch = 1; branch < captured_->branches(); ++branch)
    own_.push_back(Runtime::get().add_stream(0));
}

GraphExec::~GraphExec() {
  for (const cudaStream_t stream : own_) Runtime::get().remove_stream(stream);
}

cudaError_t GraphExec::launch(cudaStream_t handle) {
  std::vector<cudaStream_t> handles{handle};
  handles.insert(handles.end(), own_.begin(), own_.end());
  Replay replay(std::move(handles), captured_->records());
  const std::shared_ptr<Stream> stream = replay.stream(0);
  cudaError_t error = last_ ? wait(*stream, last_) : cudaSuccess;
  launching = true;
  for (const Capture::Step& step : captured_->steps())
    if (error == cudaSuccess) error = step(replay);
  launching = false;
  last_ = record(*stream);
  return error;
}

bool is_launching() { return launching; }

cudaError_t unsafe_call(const char* what) {
  const std::lock_guard lock(Runtime::get().issue);
  for (const auto& each : captures())
    if (const auto capture = each.lock(); capture && forbids(*capture))
      return capture->invalidate(
          cudaErrorStreamCaptureUnsupported,
          std::string(what) + " is not allowed while this thread's captures are in progress");
  return cudaSuccess;
}

cudaError_t refuse_captured(Stream& stream, const char* what) {
  const std::lock_guard lock(Runtime::get().issue);
  if (!stream.branch.of) return cudaSuccess;
  return stream.branch.of->invalidate(cudaErrorStreamCaptureUnsupported,
                                      std::string(what) + " on " + stream.name() +
                                          ", which is captured, would wait for what does not run");
}

cudaStreamCaptureMode exchange_mode(cudaStreamCaptureMode mode) {
  return std::exchange(mode_of_thread, mode);
}

cudaError_t capture_step(Stream& stream, const std::string& what,
                         std::span<const sim::Access> accesses,
                         std::function<cudaError_t(Stream& at)> step) {
  Capture& capture = *stream.branch.of;
  if (!capture.is_valid()) return cudaErrorStreamCaptureInvalidated;
  capture.add(stream.branch.number,
              [branch = stream.branch.number, what, step = std::move(step),
               list = std::vector(accesses.begin(), accesses.end())](Replay& replay) {
                const auto at = replay.stream(branch);
                const std::string fault = freed_operand(what, list);
                if (fault.empty()) return step(*at);
                Runtime::get().device(at->device()).fail(cudaErrorIllegalAddress, fault);
                return cudaErrorIllegalAddress;
              });
  return cudaSuccess;
}

cudaError_t begin_capture(Stream& stream, cudaStreamCaptureMode mode) {
  const std::lock_guard lock(Runtime::get().issue);
  if (stream.is_default()) return cudaErrorStreamCaptureUnsupported;
  if (stream.branch.of) return cudaErrorIllegalState;
  const auto capture = std::make_shared<Capture>(mode, ++last_id);
  capture->join(stream);
  captures().push_back(capture);
  return cudaSuccess;
}

cudaError_t end_capture(Stream& stream, std::shared_ptr<Graph>& graph) {
  const std::lock_guard lock(Runtime::get().issue);
  const std::shared_ptr<Capture> capture = stream.branch.of;
  if (!capture) return cudaErrorIllegalState;
  if (stream.branch.number != 0) return cudaErrorStreamCaptureUnmatched;
  if (capture->mode() != cudaStreamCaptureModeRelaxed && !capture->is_of_this_thread())
    return cudaErrorStreamCaptureWrongThread;
  capture->end();
  if (!capture->is_valid()) return cudaErrorStreamCaptureInvalidated;
  if (!capture->is_joined()) return cudaErrorStreamCaptureUnjoined;
  graph = std::make_shared<Graph>(Graph{capture});
  return cudaSuccess;
}

}  // namespace tessera::cudart

namespace tessera::sim {

using cudart::Runtime;

bool is_capturing(cudaStream_t handle) {
  if (Runtime::unusable() != cudaSuccess || Runtime::get().devices() == 0) return false;
  const cudart::InsideDouble inside;
  const auto stream = Runtime::get().find_stream(handle);
  const std::lock_guard lock(Runtime::get().issue);
  return stream && stream->branch.of;
}

bool is_launching_graph() { return cudart::is_launching(); }

cudaError_t capture_call(std::span<const cudaStream_t> handles, CapturedCall call) {
  const cudart::InsideDouble inside;
  std::vector<std::shared_ptr<cudart::Stream>> streams;
  for (const cudaStream_t handle : handles) streams.push_back(Runtime::get().find_stream(handle));
  const std::lock_guard lock(Runtime::get().issue);
  const std::shared_ptr<cudart::Capture> capture = streams.at(0)->branch.of;
  std::vector<std::size_t> branches;
  for (const auto& stream : streams) {
    if (stream->branch.of != capture)
      return capture->invalidate(cudaErrorStreamCaptureMerge,
                                 "one call has streams inside and outside of the capture");
    branches.push_back(stream->branch.number);
  }
  if (!capture->is_valid()) return cudaErrorStreamCaptureInvalidated;
  capture->add(branches,
               [branches, call = std::move(call),
                captured = std::vector(handles.begin(), handles.end())](cudart::Replay& replay) {
                 return call([&](cudaStream_t stream) {
                   const auto at = std::ranges::find(captured, stream) - captured.begin();
                   return replay.handle(branches[static_cast<std::size_t>(at)]);
                 });
               });
  return cudaSuccess;
}

}  // namespace tessera::sim
