// SPDX-License-Identifier: Apache-2.0
// Limits on time hold for ordinary programs, and on machines that stand still for seconds.
#pragma once

#include <ctime>

namespace tessera::test {

/// How many times longer a program may take for the sanitizer in it.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int kSlowdown = 10;
#else
inline constexpr int kSlowdown = 1;
#endif

/// Processor time of this process so far, which a busy machine does not lengthen.
inline double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

}  // namespace tessera::test
