// SPDX-License-Identifier: Apache-2.0
// TorchTitan's MoE layer (tests/golden/moe): outputs, gradients and routing of three kinds.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tessera/hf/safetensors.hpp"
#include "tessera/model/model.hpp"
#include "tessera/model/routing.hpp"

namespace tessera::model {
namespace {

using at::Tensor;
using nlohmann::json;

const std::string kFolder = std::string(TESSERA_TEST_DATA) + "/moe/";

json cases() { return json::parse(std::ifstream(kFolder + "moe_layer.json")); }

Tensor stored(const std::string& name, at::ScalarType type) {
  static const hf::SafetensorsReader reader(kFolder + "moe_layer.safetensors");
  const TensorInfo* entry = reader.find(name);
  EXPECT_TRUE(entry) << name;
  const bool whole = type == at::kInt;
  const Tensor values = at::empty(entry->shape, whole ? at::kInt : at::kFloat);
  reader.read_whole(name, whole ? DType::i32 : DType::f32, values.data_ptr());
  return values.to(type);
}

DecoderShape shape_of(const json& args) {
  DecoderShape shape;
  shape.layers = 1;
  shape.dim = args["dim"];
  shape.mixture.emplace();
  shape.mixture->hidden = args["hidden"];
  shape.mixture->shared = args["num_shared_experts"];
  shape.mixture->balance_rate = 1e-3;
  RoutingRule& rule = shape.mixture->routing;
  rule.experts = args["num_experts"];
  rule.top_k = args["top_k"];
  rule.score = args["score_func"] == "sigmoid" ? ScoreFunction::sigmoid : ScoreFunction::softmax;
  rule.normalise = args["route_norm"];
  rule.scale = args["route_scale"];
  rule.before_experts = args["score_before_experts"];
  if (!args["num_expert_groups"].is_null()) {
    rule.groups = args["num_expert_groups"];
    rule.kept_groups = args["num_limited_groups"];
  }
  return shape;
}

/// The mixture's cells of a model of one layer, run as a unit runs them on one rank.
struct Layer {
  Layer(const std::string& name, const json& args, at::ScalarType type)
      : model(make_decoder(shape_of(args), 1, type)) {
    for (const ParamSpec& spec : model.params)
      if (const auto at = spec.fqn.find(".moe."); at != spec.fqn.npos)
        weights[spec.fqn.substr(at + 5)] =
            stored(name + "." + spec.fqn.substr(at + 5), type).requires_grad_(true);
    bias = at::zeros({args["num_experts"].get<std::int64_t>()}, type);
    if (!args["expert_bias"].is_null())
      bias = at::tensor(args["expert_bias"].get<std::vector<double>>()).to(type);
    loads.counts = {at::zeros_like(bias, at::kLong)};
  }

  /// y of tokens x [T, dim]; `scores` and `chosen` get what the router decided.
  Tensor run(const Tensor& x) {
    Flow flow;
    flow[Slot::x] = at::zeros_like(x);
    flow[Slot::m] = x;
    for (std::size_t i = 0; i < model.cells.size(); ++i) {
      const CellSpec& cell = model.cells[i];
      if (cell.name.find(".moe.") == std::string::npos) continue;
      std::vector<Weight> pieces;
      for (const int param : cell.params) {
        const std::string& fqn = model.params[static_cast<std::size_t>(param)].fqn;
        pieces.push_back({weights.at(fqn.substr(fqn.find(".moe.") + 5))});
      }
      Arrival arrival;
      CellContext context{pieces, 1, 0, nullptr};
      context.arrival = &arrival;
      if (!cell.buffers.empty()) context.buffers = std::span(&bias, 1);
      context.loads = &loads;
      if (cell.source) flow[Slot::h] = flow[*cell.source];
      model.functions[i].forward(flow, context);
      if (model.functions[i].arrived) model.functions[i].arrived(flow, context);
      if (cell.name.ends_with("router")) {
        scores = flow[Slot::scores];
        chosen = flow[Slot::route];
      }
      if (cell.residual) flow[Slot::x] = flow[Slot::x] + flow.take(Slot::h);
    }
    return flow[Slot::x];
  }

  Model model;
  std::map<std::string, Tensor> weights;
  Tensor bias, scores, chosen;
  ExpertLoads loads;
};

/// sum of t_i cos(0.1 (i + 1)): catches what keeps the norm.
double probe(const Tensor& t) {
  const Tensor flat = t.to(at::kDouble).flatten();
  return (flat * at::cos(0.1 * at::arange(1, flat.size(0) + 1, at::kDouble))).sum().item<double>();
}

double worst(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item<double>(); }

class MoeGolden : public testing::TestWithParam<const char*> {
 protected:
  const std::string name_ = GetParam();
  const json all_ = cases();
  const json& case_ = all_.at(name_);
};
INSTANTIATE_TEST_SUITE_P(Routings, MoeGolden,
                         testing::Values("softmax_top2_after", "sigmoid_top1_before_shared",
                                         "sigmoid_top3_grouped_bias_shared"));

TEST_P(MoeGolden, OutputsAndGradientsInFloat32) {
  Layer layer(name_, case_["args"], at::kFloat);
  const Tensor x = stored(name_ + ".x", at::kFloat).requires_grad_(true);
  const Tensor y = layer.run(x.view({-1, x.size(2)})).view(x.sizes());
  EXPECT_LE(worst(y, stored(name_ + ".y_f32", at::kFloat)), 2.4e-6);
  y.backward(stored(name_ + ".dy", at::kFloat));
  EXPECT_LE(worst(x.grad(), stored(name_ + ".dx_f32", at::kFloat)), 2.4e-6);
}

TEST_P(MoeGolden, EveryWeightsGradientInFloat64) {
  Layer layer(name_, case_["args"], at::kDouble);
  const Tensor x = stored(name_ + ".x", at::kDouble).requires_grad_(true);
  layer.run(x.view({-1, x.size(2)})).view(x.sizes()).backward(stored(name_ + ".dy", at::kDouble));
  EXPECT_EQ(case_["grads_f64"].size(), layer.weights.size());
  for (const auto& [weight, expected] : case_["grads_f64"].items()) {
    const Tensor gradient = layer.weights.at(weight).grad();
    const double l2 = expected["l2"], tolerance = 1e-6 * l2;  // the reference's scores are float32
    EXPECT_NEAR(gradient.norm().item<double>(), l2, tolerance) << weight;
    EXPECT_NEAR(probe(gradient), expected["probe"].get<double>(), tolerance) << weight;
  }
}

TEST_P(MoeGolden, ChoicesWeightsAndLoads) {
  Layer layer(name_, case_["args"], at::kFloat);
  const Tensor x = stored(name_ + ".x", at::kFloat);
  layer.run(x.view({-1, x.size(2)}));
  const auto [ascending, order] = layer.chosen.sort(1);
  EXPECT_TRUE(ascending.equal(stored(name_ + ".topk_idx_ascending", at::kInt).to(at::kLong)));
  EXPECT_LE(worst(layer.scores.gather(1, order), stored(name_ + ".topk_weight_f32", at::kFloat)),
            1e-6);
  const Tensor load = layer.loads.counts[0];
  EXPECT_TRUE(
      load.equal(at::tensor(case_["tokens_per_expert"].get<std::vector<double>>()).to(at::kLong)));
  balance_bias(layer.bias, load, case_["load_balance_coeff"]);
  const Tensor updated = at::tensor(case_["expert_bias_after_update"].get<std::vector<double>>());
  EXPECT_LE(worst(layer.bias, updated.to(at::kFloat)), 1e-7);
}

}  // namespace
}  // namespace tessera::model
