// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/hf_weights.hpp"

#include "tessera/hf/model_weights.hpp"
#include "tessera/parallel/tensor_buffer.hpp"

namespace tessera::train {

HfMisfits find_hf_misfits(const model::ModelSpec& model, const std::filesystem::path& path,
                          const LoadChoice& choice) {
  HfMisfits misfits;
  const hf::WeightFiles files(path);
  const hf::ModelWeights weights(files, model, hf::Names::hugging_face);
  const auto consider = [&](const std::string& fqn, const std::string& misfit) {
    if (choice.excludes(fqn)) misfits.fqns.insert(fqn);
    if (choice.excludes(fqn) || misfit.empty() || choice.mismatch == checkpoint::Policy::strict)
      return;
    misfits.fqns.insert(fqn);
    if (choice.mismatch == checkpoint::Policy::warn)
      misfits.table += fmt::format("\n  {}: {}", fqn, misfit);
  };
  for (const model::ParamSpec& spec : model.params)
    consider(spec.fqn, weights.misfit("model/" + spec.fqn));
  for (const model::BufferSpec& buffer : model.buffers)
    if (!buffer.hf_name.empty()) consider(buffer.fqn, weights.misfit("model/" + buffer.fqn));
  if (!misfits.table.empty())
    misfits.table = fmt::format(
        "{} lacks tensors of this job, or has unexpected ones; tensors without a value keep their "
        "initial values:{}",
        path.string(), misfits.table);
  return misfits;
}

void load_hf_weights(const parallel::Holdings& holdings, const model::ModelSpec& model,
                     const std::filesystem::path& path, const std::set<std::string>& left_out) {
  const hf::WeightFiles files(path);
  const hf::ModelWeights weights(files, model, hf::Names::hugging_face);
  at::NoGradGuard no_grad;
  const auto fill = [&](const at::Tensor& tensor, TensorSlice box) {
    const at::Tensor host = at::empty(tensor.sizes(), tensor.options().device(at::kCPU));
    box.dtype = parallel::dtype_of(tensor.scalar_type());
    weights.read(box, host.data_ptr());
    tensor.copy_(host);
  };
  for (const parallel::ShardedParam* param : holdings.params)
    if (!left_out.contains(param->spec->fqn)) fill(param->master, param->slice("model/"));
  for (std::size_t i = 0; i < model.buffers.size(); ++i) {
    const model::BufferSpec& buffer = model.buffers[i];
    if (holdings.buffers[i].defined() && !left_out.contains(buffer.fqn))
      fill(holdings.buffers[i], {"model/" + buffer.fqn, DType::f32, buffer.shape,
                                 Shape(buffer.shape.size(), 0), buffer.shape});
  }
}

}  // namespace tessera::train
