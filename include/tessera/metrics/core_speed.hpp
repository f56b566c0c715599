// SPDX-License-Identifier: Apache-2.0
// What the cores of this node do, measured in milliseconds and without a library.
#pragma once

namespace tessera::metrics {

/// The widest vectors that a core multiplies while its clock is measured.
enum class VectorLoad { none, bits_256, bits_512 };

/// Cycles a second of this thread's core, from a chain of additions that each wait for the one
/// before: one cycle each on every core of today. Many processors lower their clock for wide
/// vectors, so that multiplications of `load` run beside the chain. The caller must know that the
/// core has them. The stated clock will not do: it is the base clock on virtual machines, and the
/// idle clock elsewhere. Takes about 3 ms. 0: no such chain for this kind of processor.
double core_clock_hz(VectorLoad load);

/// Bytes a second, read and written, of one thread that copies more than caches hold while all of
/// `threads` do. They are at most as many as processors on which this process may run. Takes about
/// 20 ms, and 64 MiB or 8 MiB a thread.
double copy_rate(int threads);

}  // namespace tessera::metrics
