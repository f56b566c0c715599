// Builds the list of cells of a decoder, part by part, in the order in which they run.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rotary.hpp"
#include "tessera/model/decoder.hpp"

namespace tessera::model {

class Builder {
 public:
  Builder(const DecoderShape& shape, Angles angles, bool stretched)
      : shape_(shape), angles_(std::make_shared<Angles>(std::move(angles))), stretched_(stretched) {}

  Model build();

 private:
  using Forward = std::function<void(Flow&, const CellContext&)>;

  // builder.cpp
  void embedding();
  void block();
  void norm(const char* what, const char* hf_name, Slot into);
  void head();
  // attention.cpp
  void attention();
  std::vector<int> projections();
  Forward project(bool biased) const;
  void attend_and_project(std::int64_t key_dim, std::int64_t kv_heads, std::int64_t value_dim);
  // latent_attention.cpp
  void latent_attention();
  void latents();
  void heads_from_latents();
  // feed_forward.cpp
  void feed_forward();
  void gated_layer(const std::string& part, const std::string& hf_part, std::int64_t hidden,
                   std::optional<Slot> source);
  // mixture.cpp
  void mixture();
  void router();
  void dispatch();
  void experts();
  void combine();

  /// Adds a parameter; returns its index.
  int param(ParamSpec spec);
  /// A matrix of block `layer_` with Hugging Face's name for it.
  int matrix(const std::string& what, Shape shape, Placement placement, double std, const std::string& hf_name);
  int ones(const std::string& what, std::int64_t size, Placement placement, const std::string& hf_name);
  Cell& cell(const std::string& name, std::vector<int> params, std::vector<Live> live, Forward forward);
  void unit(const std::string& name, std::size_t begin);

  Live tokens_of(Slot slot) const { return {slot, Spread::tokens, {shape_.dim}}; }
  static Live heads_of(Slot slot, std::int64_t heads, std::int64_t dim) { return {slot, Spread::heads, {heads, dim}}; }
  static Live features_of(std::int64_t width) { return {Slot::h, Spread::features, {width}}; }

  std::string name(const std::string& what) const { return fmt::format("layers.{}.{}", layer_, what); }
  std::string hf(const std::string& what) const { return fmt::format("model.layers.{}.{}", layer_, what); }

  InitialValues head_values() const;
  double depth_std() const;

  DecoderShape shape_;
  std::shared_ptr<const Angles> angles_;
  bool stretched_;
  Model model_;
  std::int64_t layer_ = 0;
  int embedding_ = 0;
};

/// h becomes its product with the cell's first weight.
void multiply(Flow& flow, const CellContext& context);

/// flow[into] = rms_norm of x with the cell's first weight, which can be made again from the two.
void normalise(Flow& flow, const CellContext& context, double eps, Slot into);

}  // namespace tessera::model
