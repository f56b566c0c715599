// SPDX-License-Identifier: Apache-2.0
// A mixture of experts: router, dispatch of tokens to experts, grouped products, weighted sum; no
// token is dropped.
#include "spec_builder.hpp"

namespace tessera::model {
namespace {

constexpr const char* kBound =
    "its number of rows depends on the data; cut before moe.router, or before the next block";

/// Names in Hugging Face's files of a block's mixture, after "model.layers.N.".
struct HfNames {
  const char *gate, *w1, *w3, *w2;
  HfLayout in, out;  ///< of w1 and w3 (w1's; w3's is the next odd one), and of w2
};

HfNames names_of(Family family) {
  if (family == Family::mixtral)
    return {"block_sparse_moe.gate",
            "block_sparse_moe.experts.{}.w1.weight",
            "block_sparse_moe.experts.{}.w3.weight",
            "block_sparse_moe.experts.{}.w2.weight",
            HfLayout::each_expert,
            HfLayout::each_expert};
  if (family == Family::gpt_oss)
    return {"mlp.router",
            "mlp.experts.gate_up_proj",
            "mlp.experts.gate_up_proj",
            "mlp.experts.down_proj",
            HfLayout::even_transposed,
            HfLayout::transposed};
  return {"mlp.gate",
          "mlp.experts.{}.gate_proj.weight",
          "mlp.experts.{}.up_proj.weight",
          "mlp.experts.{}.down_proj.weight",
          HfLayout::each_expert,
          HfLayout::each_expert};
}

}  // namespace

void SpecBuilder::mixture() {
  const MixtureShape& m = *shape_.mixture;
  if (m.shared > 0)
    gated_layer("moe.shared_experts", "mlp.shared_experts", m.shared * m.hidden, Slot::m);
  router();
  dispatch();
  experts();
  combine();
}

void SpecBuilder::router() {
  const MixtureShape& m = *shape_.mixture;
  const std::string hf_gate = names_of(shape_.family).gate;
  std::vector<int> weights{matrix("moe.router.gate.weight", {m.routing.experts, shape_.dim},
                                  Placement::shared, depth_std(), hf_gate + ".weight")};
  if (m.biased)
    weights.push_back(matrix("moe.router.gate.bias", {m.routing.experts}, Placement::shared,
                             depth_std(), hf_gate + ".bias"));
  CellSpec& made =
      cell(CellKind::router, name("moe.router"), weights, {tokens_of(Slot::x), tokens_of(Slot::m)});
  made.input = Boundary::to_experts;
  made.mixture = static_cast<int>(model_.mixtures.size());
  MixtureSpec spec{name("moe"), m.routing.experts, m.routing.top_k, -1, m.balance_rate};
  const bool known = shape_.family == Family::deepseek_v3;
  if (m.balance_rate > 0 || known) {
    spec.bias = static_cast<int>(model_.buffers.size());
    model_.buffers.push_back({name("moe.expert_bias"),
                              {m.routing.experts},
                              known ? hf("mlp.gate.e_score_correction_bias") : std::string()});
    made.buffers = {spec.bias};
  }
  model_.mixtures.push_back(std::move(spec));
}

void SpecBuilder::dispatch() {
  cell(CellKind::dispatch, name("moe.dispatch"), {}, {tokens_of(Slot::x), tokens_of(Slot::m)})
      .bound = kBound;
}

void SpecBuilder::experts() {
  const MixtureShape& m = *shape_.mixture;
  const HfNames hf_names = names_of(shape_.family);
  const std::int64_t e = m.routing.experts;
  const auto add = [&](const std::string& what, Shape shape, Placement placement, double std,
                       const std::string& hf_name, HfLayout layout) {
    const int index = matrix("moe.experts." + what, std::move(shape), placement, std, hf_name);
    param_at(index).hf_layout = layout;
    return index;
  };
  const bool fused = hf_names.in == HfLayout::even_transposed;
  std::vector<int> weights{
      add("w1", {e, m.hidden, shape_.dim}, Placement::expert_column, input_std(), hf_names.w1,
          hf_names.in),
      add("w3", {e, m.hidden, shape_.dim}, Placement::expert_column, depth_std(), hf_names.w3,
          fused ? HfLayout::odd_transposed : hf_names.in),
      add("w2", {e, shape_.dim, m.hidden}, Placement::expert_row, depth_std(), hf_names.w2,
          hf_names.out)};
  if (m.biased) {
    const std::string in = std::string(hf_names.w1) + "_bias",
                      out = std::string(hf_names.w2) + "_bias";
    weights.push_back(
        add("w1_bias", {e, m.hidden}, Placement::expert_column, depth_std(), in, HfLayout::even));
    weights.push_back(
        add("w3_bias", {e, m.hidden}, Placement::expert_column, depth_std(), in, HfLayout::odd));
    weights.push_back(
        add("w2_bias", {e, shape_.dim}, Placement::expert, depth_std(), out, HfLayout::same));
  }
  CellSpec& made = cell(CellKind::experts, name("moe.experts"), weights,
                        {tokens_of(Slot::x), tokens_of(Slot::m)});
  made.activity = static_cast<double>(m.routing.top_k) / static_cast<double>(e);
  made.biased = m.biased;
  made.bound = kBound;
}

void SpecBuilder::combine() {
  CellSpec& made =
      cell(CellKind::combine, name("moe.combine"), {}, {tokens_of(Slot::x), tokens_of(Slot::m)});
  made.output = Boundary::from_experts;
  made.residual = true;
  made.bound = kBound;
}

}  // namespace tessera::model
