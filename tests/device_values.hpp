// SPDX-License-Identifier: Apache-2.0
// Device memory for tests, which are compiled without CUDA: they use the CUDA runtime that the
// process has loaded, the simulated one (TESSERA_TEST_DEVICE=sim) or NVIDIA's (cuda).
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>

#include "wanted_device.hpp"

namespace tessera::test {

/// Whether this run is about device memory.
inline bool on_device() { return wanted_device() != "cpu"; }

/// Bytes on the current device. Copies wait for the default stream.
class DeviceBytes {
 public:
  explicit DeviceBytes(std::size_t bytes) : bytes_(bytes) {
    void* data = nullptr;
    check("cudaMalloc", function<int(void**, std::size_t)>("cudaMalloc")(&data, bytes ? bytes : 1));
    data_ = std::shared_ptr<void>(data, [](void* gone) { function<int(void*)>("cudaFree")(gone); });
  }
  void* data() const { return data_.get(); }
  void upload(const void* from) { copy(data_.get(), from, 1); }
  void download(void* to) const { copy(to, data_.get(), 2); }
  /// All bytes become `value` on the default stream; nobody waits for it.
  void fill(int value) {
    check("cudaMemsetAsync", function<int(void*, int, std::size_t, void*)>("cudaMemsetAsync")(
                                 data(), value, bytes_, nullptr));
  }

 private:
  template <class Signature>
  static Signature* function(const char* name) {
    void* found = dlsym(RTLD_DEFAULT, name);
    if (!found)
      throw std::runtime_error(std::string("no CUDA runtime in this process: it has no ") + name);
    return reinterpret_cast<Signature*>(found);
  }
  static void check(const char* name, int error) {
    if (error != 0)
      throw std::runtime_error(std::string(name) + " failed with code " + std::to_string(error));
  }
  /// `kind` is a cudaMemcpyKind.
  void copy(void* to, const void* from, int kind) const {
    if (bytes_ == 0) return;
    check("cudaMemcpy", function<int(void*, const void*, std::size_t, int)>("cudaMemcpy")(
                            to, from, bytes_, kind));
  }
  std::size_t bytes_;
  std::shared_ptr<void> data_;
};

}  // namespace tessera::test
