// SPDX-License-Identifier: Apache-2.0
// CUDA graphs: what streams were given while they were captured, and its launches. A stream that is
// captured is a branch of the graph. A launch gives each branch's tasks to a stream of its own,
// with the events that order them: the race checker then sees fresh accesses, ordered as in the
// graph.
//
// Branches of a capture are guarded by the issue lock (device.hpp). A capture that has ended does
// not change.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "device.hpp"

namespace tessera::cudart {

/// A launch of a graph: the streams that stand for its branches.
class Replay {
 public:
  Replay(std::vector<cudaStream_t> handles, std::size_t records);
  /// Null where the stream has been destroyed.
  std::shared_ptr<Stream> stream(std::size_t branch) const;
  cudaStream_t handle(std::size_t branch) const { return handles_[branch]; }
  std::shared_ptr<Record>& record(std::size_t number) { return records_[number]; }

 private:
  std::vector<cudaStream_t> handles_;
  std::vector<std::shared_ptr<Record>> records_;
};

class Capture : public std::enable_shared_from_this<Capture> {
 public:
  /// What one call does at each launch.
  using Step = std::function<cudaError_t(Replay&)>;

  Capture(cudaStreamCaptureMode mode, std::uint64_t id);
  std::uint64_t id() const { return id_; }
  cudaStreamCaptureMode mode() const { return mode_; }
  bool is_of_this_thread() const { return thread_ == std::this_thread::get_id(); }
  std::size_t branches() const { return known_.size(); }
  std::size_t records() const { return records_; }
  const std::vector<Step>& steps() const { return steps_; }

  /// `stream`, which no other capture has, is captured from now on.
  void join(Stream& stream);
  void add(std::size_t branch, Step step);
  /// A step of several branches, of which each then follows all.
  void add(std::span<const std::size_t> branches, Step step);
  std::shared_ptr<Record> record(std::size_t branch);
  void wait(std::size_t branch, const CapturedEnd& end);

  /// The capture has met what it cannot hold: from now on every call of its streams fails.
  cudaError_t invalidate(cudaError_t error, const std::string& why);
  bool is_valid() const { return valid_; }
  bool is_in_progress() const { return in_progress_; }
  /// Whether branch 0, where the capture began, follows all others.
  bool is_joined() const;
  /// The streams run what they are given again.
  void end();

 private:
  const cudaStreamCaptureMode mode_;
  const std::uint64_t id_;
  const std::thread::id thread_ = std::this_thread::get_id();
  std::vector<std::weak_ptr<Stream>> streams_;  ///< of the branches
  std::vector<Clock> known_;                    ///< to the branches, a slot for each
  std::vector<Step> steps_;
  std::size_t records_ = 0;
  bool valid_ = true, in_progress_ = true;
};

/// What cudaStreamEndCapture returns.
struct Graph {
  std::shared_ptr<const Capture> captured;
};

class GraphExec {
 public:
  explicit GraphExec(std::shared_ptr<const Capture> captured);
  GraphExec(const GraphExec&) = delete;
  ~GraphExec();
  /// After the launch before it, and as a part of the stream of this handle.
  cudaError_t launch(cudaStream_t handle);

 private:
  const std::shared_ptr<const Capture> captured_;
  std::vector<cudaStream_t> own_;  ///< of branches 1 and on
  std::shared_ptr<Record> last_;   ///< the end of the launch before
};

/// Whether the calling thread launches a graph.
bool is_launching();

/// A call that CUDA calls unsafe, as it may wait: while a capture is in progress that concerns this
/// thread (cudaThreadExchangeStreamCaptureMode), it fails, and so does the capture.
cudaError_t unsafe_call(const char* what);
/// A call that no stream in a capture allows.
cudaError_t refuse_captured(Stream& stream, const char* what);

/// The calling thread's.
cudaStreamCaptureMode exchange_mode(cudaStreamCaptureMode mode);

/// A task of a stream that is captured: `step` issues it at each launch, to where the branch then
/// is. Under the issue lock.
cudaError_t capture_step(Stream& stream, const std::string& what,
                         std::span<const sim::Access> accesses,
                         std::function<cudaError_t(Stream& at)> step);

cudaError_t begin_capture(Stream& stream, cudaStreamCaptureMode mode);
/// Null `graph` after an error.
cudaError_t end_capture(Stream& stream, std::shared_ptr<Graph>& graph);

}  // namespace tessera::cudart
