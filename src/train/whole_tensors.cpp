// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/whole_tensors.hpp"

#include <cstring>
#include <optional>

#include "tessera/hf/safetensors.hpp"
#include "tessera/parallel/tensor_buffer.hpp"

namespace tessera::train {
namespace {

/// One rank's box of a gradient on its way to rank 0: offsets, extents, values in float64.
std::string pack(const TensorSlice& slice, const at::Tensor& gradient) {
  const at::Tensor values = gradient.to(at::kCPU, at::kDouble).contiguous();
  std::string bytes;
  const auto append = [&bytes](const void* data, std::size_t size) {
    bytes.append(static_cast<const char*>(data), size);
  };
  append(slice.box.offset.data(), slice.box.offset.size() * sizeof(std::int64_t));
  append(slice.box.extent.data(), slice.box.extent.size() * sizeof(std::int64_t));
  append(values.data_ptr(), static_cast<std::size_t>(values.numel()) * sizeof(double));
  return bytes;
}

void unpack(const std::string& bytes, at::Tensor whole) {
  if (bytes.empty()) return;
  const auto dims = static_cast<std::size_t>(whole.dim());
  std::vector<std::int64_t> numbers(2 * dims);
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(std::int64_t));
  at::Tensor target = whole;
  for (std::size_t d = 0; d < dims; ++d)
    target = target.narrow(static_cast<std::int64_t>(d), numbers[d], numbers[dims + d]);
  const char* values = bytes.data() + numbers.size() * sizeof(std::int64_t);
  if (target.numel() > 0)
    target.copy_(at::from_blob(const_cast<char*>(values), target.sizes(), at::kDouble));
}

const std::string& name_in_dump(const model::ParamSpec& spec) {
  return counts_experts(spec.placement) ? spec.fqn : spec.hf_name;
}

at::Tensor in_hf_order(const model::ParamSpec& spec, const at::Tensor& whole) {
  if (spec.rope_heads == 0) return whole;
  const std::int64_t half = spec.global_shape[0] / spec.rope_heads / 2;
  return whole.view({spec.rope_heads, half, 2, -1}).transpose(1, 2).reshape(whole.sizes());
}

}  // namespace

void for_each_whole(const parallel::Params& params, const model::ModelSpec& model,
                    comm::Communicator& control,
                    const std::function<at::Tensor(const parallel::ShardedParam&)>& pick,
                    const std::function<void(const model::ParamSpec&, const at::Tensor&)>& take) {
  for (const model::ParamSpec& spec : model.params) {
    std::string mine;
    for (const parallel::ShardedParam* param : params)
      if (param->spec == &spec && param->place.counted())
        mine = pack(param->slice(""), pick(*param));
    at::Tensor whole;
    if (control.rank() == 0) whole = at::zeros(spec.global_shape, at::kDouble);
    comm::gather_strings(control, mine, [&](const std::string& box) { unpack(box, whole); });
    if (control.rank() == 0) take(spec, in_hf_order(spec, whole));
  }
}

void dump_gradients(const parallel::Params& params, const model::ModelSpec& model,
                    comm::Communicator& control, const std::filesystem::path& file) {
  const auto trained =
      std::ranges::find_if(params, [](const auto* param) { return param->gradient.defined(); });
  const auto type =
      (trained == params.end() ? params.front()->master : (*trained)->gradient).scalar_type();
  std::optional<hf::SafetensorsWriter> writer;
  if (control.rank() == 0) {
    std::filesystem::create_directories(file.parent_path());
    std::vector<TensorInfo> entries;
    for (const model::ParamSpec& spec : model.params)
      entries.push_back({name_in_dump(spec), parallel::dtype_of(type), spec.global_shape});
    writer.emplace(file, std::move(entries));
  }
  for_each_whole(
      params, model, control,
      [](const parallel::ShardedParam& param) {
        return param.gradient.defined() ? param.gradient : at::zeros_like(param.master);
      },
      [&](const model::ParamSpec& spec, const at::Tensor& whole) {
        const at::Tensor values = whole.to(type).contiguous();
        writer->write(name_in_dump(spec), 0, values.numel(), values.data_ptr());
      });
  if (writer) writer->finish();
}

}  // namespace tessera::train
