// SPDX-License-Identifier: Apache-2.0
// Values of a device on their way to the host, which need not wait for them yet.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <memory>

namespace c10 {
struct Event;
}

namespace tessera::kernels {

class HostCopy {
 public:
  HostCopy() = default;
  /// Of what the current stream has made of `values` by now; tensors of the host are not copied.
  explicit HostCopy(const at::Tensor& values);

  /// In host memory, once they are there. Undefined without values. Values of an earlier copy from
  /// the same stream are there, too.
  const at::Tensor& wait() const;

 private:
  at::Tensor on_host_;
  std::shared_ptr<c10::Event> copied_;
};

}  // namespace tessera::kernels
