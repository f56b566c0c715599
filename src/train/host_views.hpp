// A rank's tensors as the boxes that checkpoints hold.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tessera/checkpoint/checkpoint.hpp"
#include "tessera/parallel/stage.hpp"

namespace tessera::train {

/// Boxes in host memory: what is there already is used in place, device memory through a copy.
class HostViews {
 public:
  /// The box of `ref`'s parameter that `tensor` is, under the name prefix + fqn.
  void add(const std::string& prefix, const parallel::ParamRef& ref, const torch::Tensor& tensor);
  /// The whole of a tensor that `replicas` ranks hold, of which this is number `replica`.
  void add_whole(const std::string& name, const torch::Tensor& tensor, int replica, int replicas);
  std::span<const checkpoint::SliceView> views() const { return views_; }
  /// Brings what was loaded to the device.
  void write_back();

 private:
  void add(checkpoint::SliceView view, const torch::Tensor& tensor);
  std::vector<checkpoint::SliceView> views_;
  std::vector<std::pair<torch::Tensor, torch::Tensor>> copies_;
};

/// "model/<fqn>" of every parameter and buffer.
HostViews model_views(const parallel::Holdings& holdings, const model::Model& model, mesh::DeviceMesh& mesh);

}  // namespace tessera::train
