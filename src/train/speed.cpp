// SPDX-License-Identifier: Apache-2.0
#include "speed.hpp"

#include "tessera/parallel/tensor_buffer.hpp"
#include "tessera/train/device.hpp"

namespace tessera::train {

metrics::FlopsPerToken flops_of(const model::ModelSpec& model, std::int64_t seq) {
  const model::Dimensions& d = model.dimensions;
  return metrics::flops_per_token({model.active_parameter_count(),
                                   model.embedding_parameter_count(), d.layers, d.heads,
                                   d.head_dim + d.value_dim, seq});
}

metrics::Peak peak_of(const plan::MetricsPlan& plan, const parallel::StageOptions& options,
                      int ranks_on_node) {
  if (plan.peak_flops) return {*plan.peak_flops, "metrics.peak_flops"};
  return peak_of(options.sharding.device, parallel::dtype_of(options.sharding.precision.compute),
                 ranks_on_node);
}

metrics::Peak peak_of(at::Device device, DType dtype, int ranks_on_node) {
  const std::string name = device_name(device);
  if (name.empty()) return metrics::host_peak(dtype, ranks_on_node);
  return metrics::device_peak(name, dtype).value_or(metrics::Peak{0, "unknown device " + name});
}

}  // namespace tessera::train
