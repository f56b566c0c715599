// SPDX-License-Identifier: Apache-2.0
// Builds the list of cells of a decoder, part by part, in the order in which they run.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "tessera/model_spec/model_spec.hpp"

namespace tessera::model {

class SpecBuilder {
 public:
  explicit SpecBuilder(const DecoderShape& shape) : shape_(shape) {}

  ModelSpec build();

 private:
  // spec_builder.cpp
  void embedding();
  void block();
  void norm(const char* what, const char* hf_name, CellKind kind);
  void head();
  void gated_layer(const std::string& part, const std::string& hf_part, std::int64_t hidden,
                   std::optional<Slot> source);
  // attention_spec.cpp
  void attention();
  std::vector<int> projections();
  void latent_attention();
  void latents();
  void heads_from_latents();
  void attend_and_project(std::int64_t key_dim, std::int64_t kv_heads, std::int64_t value_dim);
  // mixture_spec.cpp
  void mixture();
  void router();
  void dispatch();
  void experts();
  void combine();

  /// Adds a parameter; returns its index.
  int param(ParamSpec spec);
  ParamSpec& param_at(int index) { return model_.params[static_cast<std::size_t>(index)]; }
  /// A matrix of block `layer_` with Hugging Face's name for it.
  int matrix(const std::string& what, Shape shape, Placement placement, double std,
             const std::string& hf_name);
  int ones(const std::string& what, std::int64_t size, Placement placement,
           const std::string& hf_name);
  CellSpec& cell(CellKind kind, const std::string& name, std::vector<int> params,
                 std::vector<Live> live);
  void unit(const std::string& name, std::size_t begin);

  Live tokens_of(Slot slot) const { return {slot, Spread::tokens, {shape_.dim}}; }
  static Live heads_of(Slot slot, std::int64_t heads, std::int64_t dim) {
    return {slot, Spread::heads, {heads, dim}};
  }
  static Live features_of(std::int64_t width) { return {Slot::h, Spread::features, {width}}; }

  std::string name(const std::string& what) const {
    return fmt::format("layers.{}.{}", layer_, what);
  }
  std::string hf(const std::string& what) const {
    return fmt::format("model.layers.{}.{}", layer_, what);
  }

  InitialValues head_values() const;
  // TorchTitan's standard deviations of initial values
  double depth_std() const;  ///< of most matrices: smaller in later blocks
  double input_std() const;  ///< of queries, keys, values and experts' gates

  const DecoderShape& shape_;
  ModelSpec model_;
  int layer_ = -1;  ///< -1 outside of blocks
  int embedding_ = 0;
};

}  // namespace tessera::model
