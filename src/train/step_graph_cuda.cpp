// SPDX-License-Identifier: Apache-2.0
#include "step_graph.hpp"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <fmt/format.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/comm/device.hpp"
#include "tessera/comm/failure.hpp"
#include "tessera/comm/hooks.hpp"

namespace tessera::train {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

std::string problem(cudaError_t code, const char* call) {
  return code == cudaSuccess ? "" : fmt::format("{}: {}", call, cudaGetErrorString(code));
}

void check_graph(cudaError_t code, const char* call) {
  require(code == cudaSuccess, ExitCode::environment, "{}; train with compile.enable = false",
          problem(code, call));
}

/// The next check of a launch would find it.
void forget_last_error() { static_cast<void>(cudaGetLastError()); }

/// LibTorch's messages have a backtrace below it.
std::string first_line(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

/// Memory that the allocator gives to captured streams alone. It is kept until this goes and the
/// last tensor in it is gone.
class PrivatePool {
 public:
  explicit PrivatePool(c10::DeviceIndex device) : device_(device), id_{++last_id, 0} {}
  PrivatePool(const PrivatePool&) = delete;
  ~PrivatePool() {
    if (begun_) allocator::releasePool(device_, id_);
  }

  void begin() {
    allocator::beginAllocateToPool(device_, id_, [](cudaStream_t stream) {
      cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
      check_graph(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing");
      return status == cudaStreamCaptureStatusActive;
    });
    begun_ = true;
  }
  void end() { allocator::endAllocateToPool(device_, id_); }

 private:
  static inline std::atomic<c10::CaptureId_t> last_id{0};
  c10::DeviceIndex device_;
  c10::MempoolId_t id_;
  bool begun_ = false;
};

/// A capture in progress: ends with the object at the latest.
class Recording {
 public:
  Recording(cudaStream_t stream, PrivatePool& pool) : stream_(stream), pool_(pool) {
    pool_.begin();
    // Other threads, such as the watchdog's, may ask for events of theirs meanwhile.
    const cudaError_t code = cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal);
    open_ = code == cudaSuccess;
    if (!open_) pool_.end();
    check_graph(code, "cudaStreamBeginCapture");
  }
  Recording(const Recording&) = delete;
  ~Recording() {
    if (!open_) return;
    cudaGraph_t graph = nullptr;
    static_cast<void>(end(graph));
    if (graph != nullptr) cudaGraphDestroy(graph);
  }

  /// Whether a call has ended it that no capture allows. Not so where the GPU has failed.
  bool is_lost() const {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    return cudaStreamIsCapturing(stream_, &status) == cudaSuccess &&
           status == cudaStreamCaptureStatusInvalidated;
  }
  cudaError_t end(cudaGraph_t& graph) {
    open_ = false;
    const cudaError_t code = cudaStreamEndCapture(stream_, &graph);
    pool_.end();
    forget_last_error();
    return code;
  }

 private:
  cudaStream_t stream_;
  PrivatePool& pool_;
  bool open_ = false;
};

/// One for all captures, so that libraries make only once what they keep for a stream. The legacy
/// stream cannot be captured.
c10::cuda::CUDAStream capture_stream(c10::DeviceIndex device) {
  static std::map<c10::DeviceIndex, c10::cuda::CUDAStream> streams;
  const auto found = streams.find(device);
  if (found != streams.end()) return found->second;
  const auto made = c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device);
  return streams.emplace(device, made).first->second;
}

/// What is launched. It goes before communicators are aborted: NCCL's abort waits for the end of
/// all graphs with calls of theirs.
class Executable final : public comm::Hook {
 public:
  ~Executable() override { destroy(); }
  cudaError_t take(cudaGraph_t graph) {
    const std::lock_guard lock(mutex_);
    // Communication keeps the priority of its streams.
    return cudaGraphInstantiate(&graph_, graph, cudaGraphInstantiateFlagUseNodePriority);
  }
  void launch(cudaStream_t stream) {
    const std::lock_guard lock(mutex_);
    require(!aborted_, ExitCode::communication, "a graph has calls of aborted communicators");
    TESSERA_EXPECT(graph_ != nullptr, "nothing was captured");
    check_graph(cudaGraphLaunch(graph_, stream), "cudaGraphLaunch");
  }
  void destroy() {
    const std::lock_guard lock(mutex_);
    destroy_locked();
  }
  /// A launch may hold its thread: the abort, which has a deadline, comes first then.
  void before_abort(std::string_view) noexcept override {
    aborted_ = true;
    if (const std::unique_lock lock(mutex_, std::try_to_lock); lock) destroy_locked();
  }

 private:
  void destroy_locked() {
    if (graph_ != nullptr) cudaGraphExecDestroy(std::exchange(graph_, nullptr));
  }

  std::mutex mutex_;  ///< the watchdog may abort
  cudaGraphExec_t graph_ = nullptr;
  std::atomic<bool> aborted_ = false;
};

class CudaStepGraph final : public StepGraph {
 public:
  explicit CudaStepGraph(at::Device device) : device_(device) { comm::add_hook(executable_); }
  ~CudaStepGraph() override {
    comm::remove_hook(executable_);
    forget();
  }

  std::string capture(const std::function<void()>& work) override {
    forget();
    comm::note_graph_capture();
    pool_.emplace(device_.index());
    cudaGraph_t graph = nullptr;
    if (std::string why = record(work, graph); !why.empty()) return why;
    const cudaError_t code = executable_->take(graph);
    cudaGraphDestroy(graph);
    forget_last_error();
    return problem(code, "cudaGraphInstantiate");
  }

  void launch() override {
    executable_->launch(c10::cuda::getCurrentCUDAStream(device_.index()).stream());
    comm::note_graph_launch();
  }

 private:
  std::string record(const std::function<void()>& work, cudaGraph_t& graph) {
    const c10::cuda::CUDAStream stream = capture_stream(device_.index());
    const c10::cuda::CUDAStreamGuard guard(stream);
    Recording recording(stream.stream(), *pool_);
    try {
      work();
    } catch (const c10::OutOfMemoryError&) {
      return "the GPU has too little memory for it";
    } catch (const c10::Error& error) {
      // What is wrong without a graph, too, is thrown again call by call.
      return first_line(error.what());
    } catch (const Error& error) {
      if (error.code() != ExitCode::environment || !recording.is_lost()) throw;
      return first_line(error.what());
    }
    return problem(recording.end(graph), "cudaStreamEndCapture");
  }

  void forget() {
    executable_->destroy();
    pool_.reset();
    if (comm::has_stopped_waiting()) return;  // the GPU may never come to its end
    // What eager steps have left in the cache is as large as the pool that a capture needs, and the
    // pool as large as what they need.
    allocator::emptyCache();
  }

  at::Device device_;
  std::optional<PrivatePool> pool_;
  std::shared_ptr<Executable> executable_ = std::make_shared<Executable>();
};

}  // namespace

std::unique_ptr<StepGraph> make_step_graph(at::Device device) {
  return device.is_cuda() ? std::make_unique<CudaStepGraph>(device) : nullptr;
}

}  // namespace tessera::train
