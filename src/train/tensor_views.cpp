// SPDX-License-Identifier: Apache-2.0
#include "tensor_views.hpp"

#include "tessera/base/error.hpp"
#include "tessera/parallel/tensor_buffer.hpp"

namespace tessera::train {

void TensorViews::add(const std::string& prefix, const parallel::ShardedParam& param,
                      const at::Tensor& tensor) {
  checkpoint::SliceView view;
  view.slice = param.slice(prefix);
  view.replica = param.place.replica;
  view.replicas = param.place.replicas;
  add(std::move(view), tensor);
}

void TensorViews::add_whole(const std::string& name, const at::Tensor& tensor, int replica,
                            int replicas) {
  const Shape shape = tensor.sizes().vec();
  checkpoint::SliceView view;
  view.slice = {name, parallel::dtype_of(tensor.scalar_type()), shape, whole(shape)};
  view.replica = replica;
  view.replicas = replicas;
  add(std::move(view), tensor);
}

void TensorViews::add(checkpoint::SliceView view, const at::Tensor& tensor) {
  view.slice.dtype = parallel::dtype_of(tensor.scalar_type());
  TESSERA_EXPECT(tensor.is_contiguous(), "{} is not contiguous", view.slice.name);
  const bool in_place = tensor.is_cpu() || use_ == ViewUse::saving;
  if (!in_place) copies_.emplace_back(tensor, tensor.to(at::kCPU));
  view.data = in_place ? tensor.data_ptr() : copies_.back().second.data_ptr();
  views_.push_back(std::move(view));
}

void TensorViews::write_back() {
  at::NoGradGuard no_grad;
  for (auto& [tensor, host] : copies_) tensor.copy_(host);
}

TensorViews model_views(ViewUse use, const parallel::Holdings& holdings,
                        const model::ModelSpec& model, mesh::DeviceMesh& mesh,
                        std::optional<at::ScalarType> type) {
  using enum mesh::Axis;
  TensorViews views(use);
  for (const parallel::ShardedParam* param : holdings.params)
    views.add("model/", *param, type ? views.keep(param->master.to(*type)) : param->master);
  const comm::Communicator& holders = mesh.along({dp_replicate, dp_shard, cp, tp});
  for (std::size_t i = 0; i < model.buffers.size(); ++i)
    if (const at::Tensor& buffer = holdings.buffers[i]; buffer.defined())
      views.add_whole("model/" + model.buffers[i].fqn, buffer, holders.rank(), holders.size());
  return views;
}

}  // namespace tessera::train
