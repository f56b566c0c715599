// A mixture of experts: router, dispatch of tokens to experts, grouped products, weighted sum; no token is dropped.
#include "builder.hpp"
#include "row_order.hpp"
#include "tessera/kernels/swiglu.hpp"

namespace tessera::model {
namespace {

using at::Tensor;

constexpr const char* kBound =
    "its number of rows depends on the data; cut before moe.router, or before the next block";

/// Names in Hugging Face's files of a block's mixture, behind "model.layers.N.".
struct HfNames {
  const char *gate, *w1, *w3, *w2;
  HfLayout in, out;  ///< of w1 and w3 (w1's; w3's is the odd twin), and of w2
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

/// Each row's expert's bias [experts, features].
Tensor bias_of_rows(const Tensor& bias, const Tensor& counts) {
  const Tensor experts = at::arange(counts.size(0)).repeat_interleave(counts).to(bias.device());
  return bias.index_select(0, experts);
}

Tensor clamped_gate(const Tensor& gate, const Tensor& up, const ClampedGate& how) {
  const Tensor g = gate.clamp_max(how.limit);
  return (up.clamp(-how.limit, how.limit) + 1) * (g * at::sigmoid(how.alpha * g));
}

at::ScalarType wide(at::ScalarType type) { return type == at::kDouble ? type : at::kFloat; }

}  // namespace

void Builder::mixture() {
  const MixtureShape& m = *shape_.mixture;
  if (m.shared > 0) gated_layer("moe.shared_experts", "mlp.shared_experts", m.shared * m.hidden, Slot::m);
  router();
  dispatch();
  experts();
  combine();
}

void Builder::router() {
  const MixtureShape& m = *shape_.mixture;
  const std::string hf_gate = names_of(shape_.family).gate;
  std::vector<int> weights{matrix("moe.router.gate.weight", {m.routing.experts, shape_.dim}, Placement::shared,
                                  depth_std(), hf_gate + ".weight")};
  if (m.biased)
    weights.push_back(
        matrix("moe.router.gate.bias", {m.routing.experts}, Placement::shared, depth_std(), hf_gate + ".bias"));
  const int index = static_cast<int>(model_.mixtures.size());
  const bool balanced = model_.balance.wanted();
  Cell& made = cell(name("moe.router"), weights, {tokens_of(Slot::x), tokens_of(Slot::m)},
                    [rule = m.routing, index, balanced](Flow& flow, const CellContext& context) {
                      Tensor logits = context.operations->product(flow[Slot::m], context.weights[0]);
                      if (context.weights.size() > 1) logits = logits + context.weights[1].value;
                      logits = logits.to(wide(logits.scalar_type()));
                      const Tensor bias = context.buffers.empty() ? Tensor() : context.buffers[0];
                      const Routing routing = route(logits, bias, rule);
                      if (context.loads) context.loads->add(index, routing.chosen);
                      if (balanced) {
                        const Tensor terms = balance_terms(routing.chosen, routing.probabilities, logits);
                        Tensor& sum = flow[Slot::balance];
                        sum = sum.defined() ? sum + terms : terms;
                      }
                      flow[Slot::scores] = routing.weights;
                      flow[Slot::route] = routing.chosen;
                    });
  made.input = Boundary::to_experts;
  MixtureSpec spec{name("moe"), m.routing.experts, m.routing.top_k, -1, m.balance_rate};
  if (m.balance_rate > 0 || shape_.family == Family::deepseek_v3) {
    spec.bias = static_cast<int>(model_.buffers.size());
    const bool known = shape_.family == Family::deepseek_v3;
    model_.buffers.push_back(
        {name("moe.expert_bias"), {m.routing.experts}, known ? hf("mlp.gate.e_score_correction_bias") : std::string()});
    made.buffers = {spec.bias};
  }
  model_.mixtures.push_back(std::move(spec));
}

void Builder::dispatch() {
  const RoutingRule& rule = shape_.mixture->routing;
  cell(name("moe.dispatch"), {}, {tokens_of(Slot::x), tokens_of(Slot::m)},
       [experts = rule.experts, before = rule.before_experts](Flow& flow, const CellContext& context) {
         const Tensor chosen = flow.take(Slot::route).flatten();
         const Tensor order = chosen.argsort(/*stable=*/true, 0, false);
         const Tensor sent = at::bincount(chosen, {}, experts).to(at::kCPU);
         const Tensor received = context.exchange->counts(sent);
         Tensor rows = rows_of_choices(flow.take(Slot::m), order);
         if (before) {
           const Tensor scores = reordered(flow[Slot::scores].flatten(), order).unsqueeze(1);
           rows = (rows.to(scores.scalar_type()) * scores).to(rows.scalar_type());
         }
         rows = context.exchange->to_experts(rows, sent, received);
         flow[Slot::m] = received.size(0) > 1 ? reordered(rows, expert_order(received, rows.device())) : rows;
         flow[Slot::route] = order;
         flow[Slot::sent] = sent;
         flow[Slot::received] = received;
       })
      .bound = kBound;
}

void Builder::experts() {
  const MixtureShape& m = *shape_.mixture;
  const HfNames hf_names = names_of(shape_.family);
  const std::int64_t e = m.routing.experts;
  const auto add = [&](const std::string& what, Shape shape, Placement placement, double std,
                       const std::string& hf_name, HfLayout layout) {
    const int index = matrix("moe.experts." + what, std::move(shape), placement, std, hf_name);
    model_.params[static_cast<std::size_t>(index)].hf_layout = layout;
    return index;
  };
  const bool fused = hf_names.in == HfLayout::even_transposed;
  std::vector<int> weights{
      add("w1", {e, m.hidden, shape_.dim}, Placement::expert_column, 0.02, hf_names.w1, hf_names.in),
      add("w3", {e, m.hidden, shape_.dim}, Placement::expert_column, depth_std(), hf_names.w3,
          fused ? HfLayout::odd_transposed : hf_names.in),
      add("w2", {e, shape_.dim, m.hidden}, Placement::expert_row, depth_std(), hf_names.w2, hf_names.out)};
  if (m.biased) {
    const std::string in = std::string(hf_names.w1) + "_bias", out = std::string(hf_names.w2) + "_bias";
    weights.push_back(add("w1_bias", {e, m.hidden}, Placement::expert_column, depth_std(), in, HfLayout::even));
    weights.push_back(add("w3_bias", {e, m.hidden}, Placement::expert_column, depth_std(), in, HfLayout::odd));
    weights.push_back(add("w2_bias", {e, shape_.dim}, Placement::expert, depth_std(), out, HfLayout::same));
  }
  Cell& made = cell(name("moe.experts"), weights, {tokens_of(Slot::x), tokens_of(Slot::m)},
                    [clamped = m.clamped, biased = m.biased](Flow& flow, const CellContext& context) {
                      const Tensor counts = flow[Slot::received].sum(0), rows = flow.take(Slot::m);
                      const auto product = [&](const Tensor& x, std::size_t weight) {
                        const Tensor y = context.operations->expert_product(x, context.weights[weight], counts);
                        if (!biased) return y;
                        const Tensor bias = bias_of_rows(context.weights[3 + weight].value, counts);
                        return y + (weight == 2 ? bias / context.expert_parts : bias);  // outputs of parts add up
                      };
                      const Tensor gate = product(rows, 0), up = product(rows, 1);
                      flow[Slot::m] =
                          product(clamped ? clamped_gate(gate, up, *clamped) : kernels::swiglu(gate, up), 2);
                    });
  made.activity = static_cast<double>(m.routing.top_k) / static_cast<double>(e);
  made.bound = kBound;
}

void Builder::combine() {
  Cell& made = cell(
      name("moe.combine"), {}, {tokens_of(Slot::x), tokens_of(Slot::m)},
      [before = shape_.mixture->routing.before_experts](Flow& flow, const CellContext& context) {
        const Tensor sent = flow.take(Slot::sent), received = flow.take(Slot::received);
        Tensor rows = flow.take(Slot::m);
        if (received.size(0) > 1) rows = reordered(rows, undoing(expert_order(received, rows.device())));
        rows = context.exchange->from_experts(rows, sent, received);
        rows = reordered(rows, undoing(flow.take(Slot::route)));
        const Tensor scores = flow.take(Slot::scores);
        const Tensor choices = rows.view({scores.size(0), scores.size(1), -1});
        flow[Slot::h] =
            before
                ? choices.sum(1)
                : at::bmm(scores.unsqueeze(1), choices.to(scores.scalar_type())).squeeze(1).to(choices.scalar_type());
      });
  made.output = Boundary::from_experts;
  made.residual = true;
  made.bound = kBound;
}

}  // namespace tessera::model
