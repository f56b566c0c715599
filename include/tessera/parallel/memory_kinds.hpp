// SPDX-License-Identifier: Apache-2.0
// What takes the memory of a rank, by kind.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <cstdint>
#include <string>

namespace tessera::parallel {

/// Bytes on one device.
struct MemoryKinds {
  std::int64_t weights = 0;  ///< this rank's shards, in Precision::master
  /// their gradients, and those of microbatches that are not reduced yet
  std::int64_t gradients = 0;
  std::int64_t moments = 0;        ///< of the optimizer
  std::int64_t gathered = 0;       ///< gathered weights, and what policies keep of them
  std::int64_t communication = 0;  ///< what gathers and reductions in flight read and write
  std::int64_t activations = 0;    ///< whatever else is allocated: tapes, temporaries, data
  std::int64_t on_host = 0;        ///< activations in pinned host memory; in no sum
  std::int64_t state() const { return weights + gradients + moments; }
  std::int64_t total() const { return state() + gathered + communication + activations; }

  /// "weights 1.23 GiB, gradients 1.23 GiB, ...": the kinds that have any bytes.
  std::string text() const;
};

/// Bytes of tensors of this process whose memory a communicator has registered: LibTorch's
/// allocator does not know them.
std::int64_t registered_bytes();

/// The bytes of `tensor`'s storage if that is on `device`, else 0.
std::int64_t bytes_on(at::Device device, const at::Tensor& tensor);

/// The greatest memory that was seen, and what took it.
class MemoryPeak {
 public:
  /// On the host, what is allocated by now does not count: tables of LibTorch and MPI take 60 MiB.
  explicit MemoryPeak(at::Device device);

  /// From now on look() looks, or does not: on the host a look takes some 10 microseconds.
  void watch(bool on) { on_ = on; }
  /// `kinds` counts what its caller knows of, and is called where the device has more allocated
  /// than ever before; the rest becomes activations.
  template <class Kinds>
  void look(const Kinds& kinds) {
    if (!on_) return;
    if (const std::int64_t now = allocated(); now > most_) note(now, kinds());
  }
  /// What is allocated now.
  std::int64_t allocated() const;
  /// Zeros before the first look.
  const MemoryKinds& kinds() const { return kinds_; }

 private:
  void note(std::int64_t allocated, const MemoryKinds& known);

  const at::Device device_;
  const std::int64_t before_;
  bool on_ = false;
  std::int64_t most_ = 0;
  MemoryKinds kinds_;
};

}  // namespace tessera::parallel
