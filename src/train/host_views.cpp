#include "host_views.hpp"

#include "tessera/parallel/tensor_buffer.hpp"

namespace tessera::train {

void HostViews::add(const std::string& prefix, const parallel::ParamRef& ref, const torch::Tensor& tensor) {
  checkpoint::SliceView view;
  view.slice = ref.param->slice(prefix);
  view.slice.dtype = parallel::dtype_of(tensor.scalar_type());
  const torch::Tensor host = tensor.is_cpu() ? tensor : tensor.to(torch::kCPU);
  view.data = host.data_ptr();
  view.replica = ref.replica;
  view.replicas = ref.replicas;
  views_.push_back(std::move(view));
  copies_.emplace_back(tensor, host);
}

void HostViews::write_back() {
  torch::NoGradGuard no_grad;
  for (auto& [tensor, host] : copies_)
    if (!tensor.is_cpu()) tensor.copy_(host);
}

HostViews model_views(const parallel::ParamRefs& params) {
  HostViews views;
  for (const auto& ref : params) views.add("model/", ref, ref.param->master);
  return views;
}

}  // namespace tessera::train
