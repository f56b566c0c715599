// SPDX-License-Identifier: Apache-2.0
// A model's parameters and buffers in files of other programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/checkpoint/weight_source.hpp"
#include "tessera/hf/weight_files.hpp"
#include "tessera/model_spec/model_spec.hpp"

namespace tessera::hf {

/// Whose names and layouts the files have.
enum class Names : std::uint8_t { hugging_face, torchtitan };

/// torchtitan if the files have its token embedding.
Names names_in(const WeightFiles& files);

/// Rows of the token embedding; 0 if there is none.
std::int64_t vocabulary_rows(const WeightFiles& files);

/// Tensors under our names ("model/<fqn>") and in our layout. Reads headers when it is made, and
/// values on demand. Files without lm_head.weight take the embedding for it; buffers for which
/// Hugging Face has no name are zero.
class ModelWeights final : public checkpoint::WeightSource {
 public:
  /// `files` and `model` outlive it.
  ModelWeights(const WeightFiles& files, const model::ModelSpec& model, Names names);

  std::string description() const override;
  ExitCode misfit_kind() const override { return ExitCode::data; }
  /// Those that the files have, of the type in which they are stored, in the model's order.
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  const TensorInfo* find(std::string_view name) const override;
  /// Names the stored tensor that is missing or misshapen.
  std::string misfit(const TensorInfo& wanted) const override;
  /// Throws Error(data) naming a missing or misshapen tensor.
  void read(const TensorSlice& slice, void* out) const override;
  /// Logs how many stored tensors are not part of the model, if there are any.
  void warn_of_unused() const;
  /// Logs that the output layer takes the values of the embedding, where the model has two.
  void warn_of_borrowed() const;

 private:
  /// A parameter or a buffer.
  struct Part {
    std::string name;                          ///< ours
    const model::ParamSpec* layout = nullptr;  ///< null: it is stored there as here, or not at all
    std::vector<std::string> stored;           ///< tensors that make it up
    std::string misfit{};
    std::int64_t number = -1;  ///< in tensors_
  };
  void add(Part part, const Shape& stored_shape, const Shape& shape);
  const Part& part_of(std::string_view name) const;
  std::string misfit_of(const std::string& stored, const Shape& shape) const;
  void read_rows(const Part& part, const TensorSlice& slice, std::byte* out) const;
  void read_experts(const Part& part, const TensorSlice& slice, std::byte* out) const;
  void read_rearranged(const Part& part, const TensorSlice& slice, std::byte* out) const;

  const WeightFiles& files_;
  const model::ModelSpec& model_;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, Part, std::less<>> parts_;
};

}  // namespace tessera::hf
