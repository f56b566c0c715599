// SPDX-License-Identifier: Apache-2.0
// The simulated GPU as its own parts see it: what the doubles of the CUDA runtime and of NCCL,
// LibTorch's operators and the kernels of src/kernels/cuda tell each other. Everything here lives
// in the double of libcudart (tests/sim/runtime).
//
// A stream is a queue with a thread of its own. All work on device memory is a task of a stream and
// says which bytes it reads and writes. A happens-before checker (vector clocks, as in
// ThreadSanitizer; Lamport 1978, Mattern 1989) compares them when the task is issued: two accesses
// to a byte, one of them a write, that neither a stream, an event nor a wait of the host orders are
// an error, whatever the timing. A query that finds a stream or an event done is no wait, as that
// is luck: it orders only the return of memory to its allocator (block_freed, block_allocated).
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace tessera::sim {

/// Bytes that a task reads or writes, in device memory or in pinned host memory.
struct Access {
  const void* data = nullptr;
  std::size_t bytes = 0;
  bool writes = false;
};

/// What a task does. Runs with device memory open to its thread. An error of it becomes the
/// device's sticky error.
using Work = std::function<cudaError_t()>;

/// Appends a task to `stream` (null: the default stream) and returns. `what` names it in reports,
/// such as "aten::add.out". Returns the device's sticky error without a call of `work` where there
/// is one, and cudaErrorLaunchFailure (sticky from then on) where the checker found a race.
cudaError_t enqueue(cudaStream_t stream, std::string what, std::span<const Access> accesses,
                    Work work);

/// The same, but `work` runs on the calling thread as soon as `stream` has done all its earlier
/// tasks. To the checker this is no wait of the host. An exception of `work` goes to the caller and
/// is no error of the device.
cudaError_t run_at_once(cudaStream_t stream, std::string what, std::span<const Access> accesses,
                        Work work);

/// The host itself reads or writes device or pinned memory, as MPI does; other memory is left out.
/// It knows what the calling thread knows. A race is printed and makes the device fail.
void host_accesses(const std::string& what, const Access& access);

/// Opens device memory to this thread while it lives; nests. Elsewhere a load or store of device
/// memory ends the program with a message, where Settings::guard asks for it.
class DeviceMemoryOpen {
 public:
  DeviceMemoryOpen();
  ~DeviceMemoryOpen();
  DeviceMemoryOpen(const DeviceMemoryOpen&) = delete;
  DeviceMemoryOpen& operator=(const DeviceMemoryOpen&) = delete;
};
/// Whether device memory is closed at all, as Settings::guard says.
bool has_guard();

/// The memory file in which all device memory of this process lies, mapped at `base`. Another
/// process of this user opens it as /proc/PID/fd/FD.
struct Arena {
  int fd = -1;
  std::byte* base = nullptr;
  std::size_t bytes = 0;
};
Arena arena();
bool is_device_pointer(const void* pointer);

/// The framework's caching allocator gave out (took back) a block that belongs to `stream`: to the
/// checker a write of all its bytes on that stream; the bytes become 0xFF there (NaN in every
/// floating-point type).
cudaError_t block_allocated(const void* data, std::size_t bytes, cudaStream_t stream);
cudaError_t block_freed(const void* data, std::size_t bytes, cudaStream_t stream);

/// Whether `stream` is being captured: what it is given becomes a part of a graph and does not run.
bool is_capturing(cudaStream_t stream);
/// What a call does at each launch of the graph, with the streams that stand for those which it was
/// captured with.
using CapturedCall = std::function<cudaError_t(const std::function<cudaStream_t(cudaStream_t)>&)>;
/// Makes `call` a part of the graph of which all of `streams` are branches. Each of them follows it
/// there.
cudaError_t capture_call(std::span<const cudaStream_t> streams, CapturedCall call);
/// Whether the calling thread is in cudaGraphLaunch: what it issues is no work of the host's.
bool is_launching_graph();

/// The calling thread lets go of `object`, at which threads of the host meet, or has taken it: a
/// mutex, a semaphore, the end of a thread (runtime/host_sync.cpp). To the checker, who takes it
/// then knows what those who let go of it knew.
void released(const void* object);
void acquired(const void* object);

/// Makes `error` the device's sticky error and prints `text` once.
void fail_device(cudaError_t error, const std::string& text);

/// From the environment, read once.
struct Settings {
  /// TESSERA_SIM_OPERATORS=queued: operators are tasks; else they run at once
  bool queued_operators = false;
  std::uint64_t delay_seed = 0;  ///< TESSERA_SIM_DELAY_SEED: tasks wait up to 2 ms each; 0: never
  /// TESSERA_SIM_MEMORY_BYTES: of each device; 16 GiB of address space by default
  std::size_t memory_bytes = 0;
  int devices = 1;          ///< TESSERA_SIM_DEVICES
  std::string device_name;  ///< TESSERA_SIM_DEVICE_NAME
  int capability = 0;       ///< TESSERA_SIM_CAPABILITY: of computing, 89 for 8.9
  /// TESSERA_SIM_DRIVER: CUDA of the driver, 13000 for 13.0; below that no device works
  int driver = 0;
  /// TESSERA_SIM_CUDA_AWARE_MPI=1: MPI says that it takes device pointers
  bool cuda_aware_mpi = false;
  /// TESSERA_SIM_KERNELS=host: the host's kernels in the place of the .cu files
  bool host_kernels = false;
  /// TESSERA_SIM_GUARD: whether the host may touch device memory. `keys`: no, by protection keys of
  /// the processor; `process`: not while no task runs (slow).
  enum class Guard { none, keys, process } guard = Guard::none;
  /// TESSERA_SIM_FAIL=KIND:N or KIND:N:RANK: the Nth task of this process (of that rank only)
  /// fails, and with it the device. KIND: `address` (an illegal address) or `lost` (the GPU is
  /// gone).
  struct Failure {
    cudaError_t error = cudaSuccess;
    std::uint64_t task = 0;
  } failure;
};
const Settings& settings();

/// Waits for a time drawn from delay_seed, the process and the stream; returns at once without a
/// seed.
void delay();

/// Whether the process ends: a task that waits for another process gives up.
bool stopping();

/// What the checker found in this process so far, oldest first: one text for each, which also went
/// to stderr.
std::vector<std::string> races();
/// Forgets them and the sticky error: for tests that plant a race.
void forget_races();

/// What a process gives its devices, and how often its threads wait for them:
/// - wait: a call in which a thread waits for work that it had not waited for before, by a stream,
/// an
///   event, a device, or a copy that holds its caller;
/// - launch: an operator, a kernel, or a copy within the device;
/// - copy: between host and device;
/// - collective: a launch of NCCL; a group of calls is one for each communicator.
enum class WorkKind : std::uint8_t { wait, launch, copy, collective };
/// One more. `what` says which, such as "aten::mm".
void count_work(WorkKind kind, const std::string& what);
/// So far in this process: lines such as "launch aten::mm 12", in alphabetical order of a kind.
std::string work_by_name();

/// Copies between host and device so far, and what held the host.
struct CopyCounts {
  std::int64_t asynchronous = 0;  ///< of pinned memory, after which the caller may go on
  /// of pageable memory, or by cudaMemcpy; and each cudaStreamSynchronize()
  std::int64_t blocking = 0;
};
CopyCounts copy_counts();

}  // namespace tessera::sim
