// SPDX-License-Identifier: Apache-2.0
// A GPU's part in saving while training continues.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <memory>

#include "tessera/checkpoint/saver.hpp"

namespace tessera::train {

/// Copies from the device to pinned host memory on a stream of its own: after what the compute
/// stream has been given when a save begins, and concurrently with what it is given then: the next
/// step's forward and backward passes do not change what is copied, its update does. What is in
/// host memory already (masters that are off-loaded) is copied at once.
struct DeviceCopies : checkpoint::CopyEngine {
  /// Called on the compute stream's thread before parameters or moments change: lets the compute
  /// stream, not the caller, wait for the copies.
  virtual void hold_updates() = 0;
};

/// Null for the host, whose memory is written and copied without.
std::unique_ptr<DeviceCopies> make_device_copies(at::Device device);

}  // namespace tessera::train
