// SPDX-License-Identifier: Apache-2.0
#include "tessera/hf/model_weights.hpp"

#include <cstring>
#include <functional>
#include <set>

#include "layout.hpp"
#include "tessera/base/box.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/log.hpp"

namespace tessera::hf {
namespace {

using model::HfLayout;

constexpr const char* kGroup = "model/";
constexpr const char* kEmbedding = "model.embed_tokens.weight";
constexpr const char* kOutput = "lm_head.weight";

TensorSlice renamed(TensorSlice slice, const std::string& name) {
  slice.name = name;
  return slice;
}

/// Without the first dimension.
Shape behind(const Shape& shape) { return {shape.begin() + 1, shape.end()}; }

/// Tied weights have one table for both ends.
std::string name_in(const WeightFiles& files, std::string stored) {
  const bool tied = stored == kOutput && !files.find(kOutput) && files.find(kEmbedding);
  return tied ? kEmbedding : std::move(stored);
}

}  // namespace

Names names_in(const WeightFiles& files) {
  return files.find(model::kTokenEmbedding) ? Names::torchtitan : Names::hugging_face;
}

std::int64_t vocabulary_rows(const WeightFiles& files) {
  const TensorInfo* embedding =
      files.find(names_in(files) == Names::torchtitan ? model::kTokenEmbedding : kEmbedding);
  return embedding && embedding->shape.size() == 2 ? embedding->shape[0] : 0;
}

ModelWeights::ModelWeights(const WeightFiles& files, const model::ModelSpec& model, Names names)
    : files_(files), model_(model) {
  const bool as_here = names == Names::torchtitan;
  for (const model::ParamSpec& param : model_.params) {
    Part part{kGroup + param.fqn, as_here ? nullptr : &param, {}};
    if (as_here) part.stored = {param.fqn};
    for (std::int64_t i = 0; !as_here && i < tensor_count(param); ++i)
      part.stored.push_back(name_in(files_, tensor_name(param, i)));
    add(std::move(part), as_here ? param.global_shape : tensor_shape(param), param.global_shape);
  }
  for (const model::BufferSpec& buffer : model_.buffers) {
    Part part{kGroup + buffer.fqn, nullptr, {}};
    if (const std::string& stored = as_here ? buffer.fqn : buffer.hf_name; !stored.empty())
      part.stored = {stored};
    add(std::move(part), buffer.shape, buffer.shape);
  }
}

std::string ModelWeights::misfit_of(const std::string& stored, const Shape& shape) const {
  const TensorInfo* found = files_.find(stored);
  if (!found) return fmt::format("there is no {}", stored);
  if (found->shape == shape) return "";
  return fmt::format("{} is {} and not {}", found->name, to_string(found->shape), to_string(shape));
}

void ModelWeights::add(Part part, const Shape& stored_shape, const Shape& shape) {
  for (std::size_t i = 0; i < part.stored.size() && part.misfit.empty(); ++i)
    part.misfit = misfit_of(part.stored[i], stored_shape);
  const TensorInfo* first = part.stored.empty() ? nullptr : files_.find(part.stored[0]);
  if (first || part.stored.empty()) {
    part.number = static_cast<std::int64_t>(tensors_.size());
    tensors_.push_back({part.name, first ? first->dtype : DType::f32, shape});
  }
  std::string name = part.name;
  parts_.emplace(std::move(name), std::move(part));
}

const ModelWeights::Part& ModelWeights::part_of(std::string_view name) const {
  const auto at = parts_.find(name);
  TESSERA_EXPECT(at != parts_.end(), "{} has no {}", model_.name, name);
  return at->second;
}

const TensorInfo* ModelWeights::find(std::string_view name) const {
  const auto at = parts_.find(name);
  const bool there = at != parts_.end() && at->second.number >= 0;
  return there ? &tensors_[static_cast<std::size_t>(at->second.number)] : nullptr;
}

std::string ModelWeights::description() const { return "the model in " + files_.path().string(); }

std::string ModelWeights::misfit(const TensorInfo& wanted) const {
  const auto at = parts_.find(wanted.name);
  const bool named = at != parts_.end() && !at->second.misfit.empty();
  return named ? at->second.misfit : WeightSource::misfit(wanted);
}

void ModelWeights::read(const TensorSlice& slice, void* out) const {
  const Part& part = part_of(slice.name);
  require(part.misfit.empty(), ExitCode::data,
          "{}: {} (for {}); are these the weights of another model?", files_.path().string(),
          part.misfit, slice.name);
  if (element_count(slice.box) == 0) return;
  auto* to = static_cast<std::byte*>(out);
  if (part.stored.empty()) {
    std::memset(out, 0, bytes_of(slice));
    return;
  }
  if (!part.layout) return files_.read(renamed(slice, part.stored[0]), out);
  switch (part.layout->hf_layout) {
    case HfLayout::same:
      return read_rows(part, slice, to);
    case HfLayout::each_expert:
      return read_experts(part, slice, to);
    default:
      return read_rearranged(part, slice, to);
  }
}

/// Row by row where RoPE's order differs.
void ModelWeights::read_rows(const Part& part, const TensorSlice& slice, std::byte* out) const {
  TensorSlice row = renamed(slice, part.stored[0]);
  if (part.layout->rope_heads == 0) return files_.read(row, out);
  row.box.extent[0] = 1;
  for (std::int64_t i = 0; i < slice.box.extent[0]; ++i, out += bytes_of(row)) {
    row.box.offset[0] = stored_row(slice.box.offset[0] + i, head_dim_of(*part.layout));
    files_.read(row, out);
  }
}

void ModelWeights::read_experts(const Part& part, const TensorSlice& slice, std::byte* out) const {
  TensorSlice one{"", slice.dtype, behind(slice.global_shape), behind(slice.box.offset),
                  behind(slice.box.extent)};
  for (std::int64_t e = 0; e < slice.box.extent[0]; ++e, out += bytes_of(one)) {
    one.name = part.stored[static_cast<std::size_t>(slice.box.offset[0] + e)];
    files_.read(one, out);
  }
}

void ModelWeights::read_rearranged(const Part& part, const TensorSlice& slice,
                                   std::byte* out) const {
  const TensorSlice stored = renamed(stored_box(*part.layout, slice), part.stored[0]);
  std::vector<std::byte> values(bytes_of(stored));
  files_.read(stored, values.data());
  take_out(part.layout->hf_layout, slice.box.extent, size_of(slice.dtype), values.data(), out);
}

void ModelWeights::warn_of_unused() const {
  std::set<std::string> used;
  for (const auto& [name, part] : parts_)
    for (const std::string& made_of : part.stored)
      for (const std::string& stored : files_.stored_names(made_of)) used.insert(stored);
  std::vector<std::string> unused;
  for (const TensorInfo& stored : files_.stored())
    if (!used.contains(stored.name)) unused.push_back(stored.name);
  if (!unused.empty())
    log::warning("{}: {} tensors are not part of {} and are skipped; the first is {}",
                 files_.path().string(), unused.size(), model_.name, unused.front());
}

void ModelWeights::warn_of_borrowed() const {
  if (!model_.dimensions.tied && !files_.find(kOutput) && files_.find(kEmbedding))
    log::warning("{} has no {}: the output layer takes the values of the embedding",
                 files_.path().string(), kOutput);
}

}  // namespace tessera::hf
