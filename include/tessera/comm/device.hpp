// What communication on a GPU needs to know from those who compute there.
#pragma once

#include <functional>

namespace tessera::comm {

/// `provider` returns the caller's current compute stream (a cudaStream_t). Operations on device memory start after
/// what that stream holds when they are issued, and Request::wait() makes the stream that is current then wait for
/// them. Without a provider it is the default stream. Set before the first operation.
void set_compute_stream_provider(std::function<void*()> provider);

/// Selects this process's GPU: number `local_rank` of those that it can see, or the only one where the launcher already
/// shows each rank its own. Returns its number. Throws Error(environment) when there are fewer GPUs than ranks on the
/// node, or no CUDA in the build.
int choose_device(int local_rank);

}  // namespace tessera::comm
