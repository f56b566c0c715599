// SPDX-License-Identifier: Apache-2.0
// A rank's tensors as the boxes that checkpoints hold.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tessera/checkpoint/slice_view.hpp"
#include "tessera/parallel/stage.hpp"

namespace tessera::train {

/// What the views are for. To be saved, memory is named where it is, a device's too
/// (checkpoint::CopyEngine); to be loaded, a device's is stood for by host memory.
enum class ViewUse : std::uint8_t { saving, loading };

class TensorViews {
 public:
  explicit TensorViews(ViewUse use) : use_(use) {}
  /// The box of `param` that `tensor` is, under the name prefix + fqn.
  void add(const std::string& prefix, const parallel::ShardedParam& param,
           const at::Tensor& tensor);
  /// The whole of a tensor that `replicas` ranks hold, of which this is number `replica`.
  void add_whole(const std::string& name, const at::Tensor& tensor, int replica, int replicas);
  /// Keeps a tensor for as long as the views.
  const at::Tensor& keep(at::Tensor tensor) { return kept_.emplace_back(std::move(tensor)); }
  std::span<const checkpoint::SliceView> views() const { return views_; }
  /// Brings what was loaded to the device.
  void write_back();

 private:
  void add(checkpoint::SliceView view, const at::Tensor& tensor);
  ViewUse use_;
  std::vector<checkpoint::SliceView> views_;
  std::vector<std::pair<at::Tensor, at::Tensor>> copies_;  ///< of a device's tensors in host memory
  std::deque<at::Tensor> kept_;
};

/// "model/<fqn>" of every parameter and buffer; parameters as copies in `type` where one is given.
TensorViews model_views(ViewUse use, const parallel::Holdings& holdings,
                        const model::ModelSpec& model, mesh::DeviceMesh& mesh,
                        std::optional<at::ScalarType> type = {});

}  // namespace tessera::train
