// SPDX-License-Identifier: Apache-2.0
// What is reported about a GPU that has failed. CUDA reports it late: the call that returns the
// error is rarely the one at fault.
#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace tessera {

/// Keeps the name of a kernel that was launched; `kernel` must have static lifetime.
void note_launch(const char* kernel) noexcept;
/// The last kernels of Tessera's own that this process has launched, newest last: "rms_norm,
/// swiglu". At most eight; empty if there were none.
std::string last_launches();

/// Whether CUDA's error `code` is one of earlier work, which all calls return from then on.
bool is_gpu_failure(int code) noexcept;
/// "earlier work on this GPU failed: ...", with the last launches and what to do. `error`: CUDA's
/// words for it; `seen_by`: the call that returned it.
std::string gpu_failure(std::string_view error, std::string_view seen_by);
/// The same for an exception of LibTorch; "" if `error` is not about a GPU that has failed.
std::string gpu_failure(const std::exception& error);

}  // namespace tessera
