// SPDX-License-Identifier: Apache-2.0
// What communication on a GPU needs to know from those who compute there, and what a rank sees of
// its GPUs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tessera::comm {

/// `provider` returns the caller's current compute stream (a cudaStream_t). Operations on device
/// memory start after what that stream holds when they are issued, and Request::wait() makes the
/// stream that is current then wait for them. Without a provider it is the default stream. Set
/// before the first operation.
void set_compute_stream_provider(std::function<void*()> provider);

/// `clock` gives a stream (a cudaStream_t) what writes the device's clock, in nanoseconds, to
/// pinned memory of the host. Waits in CUDA graphs are measured by it, and without one they are
/// not. It takes a sixth of the time of timed events there (gpu-results.md). Set before the first
/// capture.
void set_device_clock(std::function<void(void* stream, std::uint64_t* at)> clock);

/// A capture of a CUDA graph begins. Graphs that were captured before are not launched again.
void note_graph_capture();

/// What was captured since note_graph_capture() is not going to run, on any rank.
void note_graph_abandoned();

/// The stream that computes was just given the graph. To the watchdog, what communicators have
/// in the graph is one call of each, until the stream comes to its end.
void note_graph_launch();

/// Adds to the Traffic of communicators what streams that compute have waited for them by now, as
/// the device has measured it. Not while a stream is captured.
void collect_device_waits();

/// While it lives, this thread's waits hold a stream beside the one that computes, and do not
/// count.
class WaitsBeside {
 public:
  WaitsBeside();
  ~WaitsBeside();
  WaitsBeside(const WaitsBeside&) = delete;
  static bool here();
};

/// What this process sees of GPUs and of the libraries that drive them.
struct DeviceFacts {
  /// whether this build of Tessera has GPU support; without it, nothing else is set
  bool build = false;
  int visible = 0;      ///< GPUs that this process can see
  int index = 0;        ///< of its own one among them
  std::string name;     ///< of its own one: "NVIDIA H200"; empty where it has none
  std::string uuid;     ///< of its own one: two ranks of a node with the same one share it
  std::string trouble;  ///< why it has none, in the CUDA runtime's words where it says so
  std::string pci;      ///< of its own one: its place on the node's PCI bus, "0000:17:00.0"
  /// the newest CUDA that the driver of the node serves, 13000 for 13.0; 0 without one
  int driver = 0;
  int nccl_built = 0;   ///< NCCL of the header, 22809 for 2.28.9; 0 in a build without NCCL
  int nccl_loaded = 0;  ///< NCCL of the library in this process
  std::vector<std::string> nccl_libraries;  ///< paths of all NCCL libraries in this process
  /// whether its environment lets NCCL serve several ranks of one GPU
  bool nccl_shares_gpus = false;
};

/// "2.28.9, built with 2.28.9": NCCL in this process and of its header; empty in a build without
/// it.
std::string nccl_version();

/// The GPU of a rank is number `local_rank` of those that it can see, or the only one where the
/// launcher already shows each rank its own. With `share`, ranks take turns where there are fewer
/// GPUs than ranks on the node.
DeviceFacts device_facts(int local_rank, bool share);

/// Makes this process use GPU number `index` of those that it can see. Throws Error(environment).
void use_device(int index);

}  // namespace tessera::comm
