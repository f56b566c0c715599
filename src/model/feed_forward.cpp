#include "builder.hpp"
#include "tessera/kernels/swiglu.hpp"

namespace tessera::model {

void Builder::feed_forward() { gated_layer("feed_forward", "mlp", shape_.hidden, std::nullopt); }

/// SwiGLU: w2(silu(w1 x) * w3 x), added to x. Its input is h, or what stays in slot `source`.
void Builder::gated_layer(const std::string& part, const std::string& hf_part, std::int64_t hidden,
                          std::optional<Slot> source) {
  const int w1 =
      matrix(part + ".w1.weight", {hidden, shape_.dim}, Placement::column, 0.02, hf_part + ".gate_proj.weight");
  const int w3 =
      matrix(part + ".w3.weight", {hidden, shape_.dim}, Placement::column, depth_std(), hf_part + ".up_proj.weight");
  const int w2 =
      matrix(part + ".w2.weight", {shape_.dim, hidden}, Placement::row, depth_std(), hf_part + ".down_proj.weight");
  std::vector<Live> between{tokens_of(Slot::x), features_of(hidden)};
  if (source) between.push_back(tokens_of(*source));
  Cell& first = cell(name(part + ".w13"), {w1, w3}, {tokens_of(Slot::x), tokens_of(source.value_or(Slot::h))},
                     [](Flow& flow, const CellContext& context) {
                       const auto gate_up = context.operations->products(flow.take(Slot::h), context.weights);
                       flow[Slot::h] = kernels::swiglu(gate_up[0], gate_up[1]);
                       context.operations->remakable(flow[Slot::h],
                                                     [gate_up] { return kernels::swiglu(gate_up[0], gate_up[1]); });
                     });
  first.input = Boundary::gather;
  first.source = source;
  Cell& second = cell(name(part + ".w2"), {w2}, between, multiply);
  second.output = Boundary::reduce;
  second.residual = true;
}

}  // namespace tessera::model
