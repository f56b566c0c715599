#include "host_views.hpp"

#include "tessera/parallel/tensor_buffer.hpp"

namespace tessera::train {

void HostViews::add(const std::string& prefix, const parallel::ParamRef& ref, const torch::Tensor& tensor) {
  checkpoint::SliceView view;
  view.slice = ref.param->slice(prefix);
  view.replica = ref.replica;
  view.replicas = ref.replicas;
  add(std::move(view), tensor);
}

void HostViews::add_whole(const std::string& name, const torch::Tensor& tensor, int replica, int replicas) {
  const Shape shape = tensor.sizes().vec();
  checkpoint::SliceView view;
  view.slice = {name, parallel::dtype_of(tensor.scalar_type()), shape, Shape(shape.size(), 0), shape};
  view.replica = replica;
  view.replicas = replicas;
  add(std::move(view), tensor);
}

void HostViews::add(checkpoint::SliceView view, const torch::Tensor& tensor) {
  view.slice.dtype = parallel::dtype_of(tensor.scalar_type());
  const torch::Tensor host = tensor.is_cpu() ? tensor : tensor.to(torch::kCPU);
  view.data = host.data_ptr();
  views_.push_back(std::move(view));
  copies_.emplace_back(tensor, host);
}

void HostViews::write_back() {
  torch::NoGradGuard no_grad;
  for (auto& [tensor, host] : copies_)
    if (!tensor.is_cpu()) tensor.copy_(host);
}

HostViews model_views(const parallel::Holdings& holdings, const model::Model& model, mesh::DeviceMesh& mesh) {
  using enum mesh::Axis;
  HostViews views;
  for (const auto& ref : holdings.params) views.add("model/", ref, ref.param->master);
  const comm::Communicator& holders = mesh.along({dp_replicate, dp_shard, cp, tp});
  for (std::size_t i = 0; i < model.buffers.size(); ++i)
    if (const torch::Tensor& buffer = holdings.buffers[i]; buffer.defined())
      views.add_whole("model/" + model.buffers[i].fqn, buffer, holders.rank(), holders.size());
  return views;
}

}  // namespace tessera::train
