// SPDX-License-Identifier: Apache-2.0
// A second stream of a device for copies that the compute stream need not wait for.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include <functional>
#include <memory>
#include <optional>

namespace c10 {
struct Event;
}

namespace tessera::kernels {

/// On the host, work runs at once and nothing waits.
class SideStream {
 public:
  /// What had been given to the stream at some time; nothing, if default-constructed.
  class Mark {
   public:
    /// The current stream continues when that is done.
    void hold_current() const;
    /// The caller does.
    void wait() const;
    /// hold_current() for the sake of `tensor`, whose memory the work of run_ahead() has allocated:
    /// nobody else gets that before the current stream has done all that it is given while the
    /// tensor lives.
    void hand_over(const at::Tensor& tensor) const;

   private:
    friend class SideStream;
    std::shared_ptr<c10::Event> event_;
    at::Device device_ = at::kCPU;
  };

  explicit SideStream(at::Device device);
  ~SideStream();

  /// Gives the stream the operators of `work`, after what the current stream has now. They must not
  /// block, so copies need pinned host memory; what they read and write must live until the mark
  /// that is returned has passed for everyone who would take that memory.
  Mark run(const std::function<void()>& work);
  /// The same without a wait for the current stream: `work` touches host memory and what it
  /// allocates itself.
  Mark run_ahead(const std::function<void()>& work);

 private:
  struct Stream;
  Mark mark_behind(const std::function<void()>& work);
  at::Device device_;
  std::unique_ptr<Stream> stream_;  ///< null on the host
};

}  // namespace tessera::kernels
