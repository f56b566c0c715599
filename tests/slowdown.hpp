// Limits on time hold for ordinary programs.
#pragma once

namespace tessera::test {

/// How many times longer a program may take for the sanitizer in it.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int kSlowdown = 10;
#else
inline constexpr int kSlowdown = 1;
#endif

}  // namespace tessera::test
