// SPDX-License-Identifier: Apache-2.0
#include "cell_functions.hpp"

#include "rotary.hpp"
#include "tessera/base/error.hpp"
#include "tessera/kernels/accumulation_type.hpp"
#include "tessera/kernels/embedding.hpp"
#include "tessera/kernels/rms_norm.hpp"
#include "tessera/kernels/swiglu.hpp"
#include "tessera/model/model.hpp"

namespace tessera::model {
namespace {

using at::Tensor;

CellFunction embedding() {
  return [](Flow& flow, const CellContext& context) {
    const Weight& table = context.weights[0];
    flow[Slot::x] = kernels::embedding(table.value, flow.take(Slot::tokens), table.row_begin);
  };
}

/// Adds what slot h has to x, and then flow[into] = rms_norm of x, which can be made again from x
/// and the weight.
CellFunction norm(double eps, Slot into) {
  return [eps, into](Flow& flow, const CellContext& context) {
    const Tensor weight = context.weights[0].value;
    const auto [x, normed] =
        kernels::summed_rms_norm(flow.take(Slot::x), flow.take(Slot::h), weight, eps);
    flow[Slot::x] = x;
    flow[into] = normed;
    context.operations->remakable(
        normed, [x = x, weight, eps] { return kernels::rms_norm(x, weight, eps); });
  };
}

CellFunction final_norm(double eps) {
  return [eps](Flow& flow, const CellContext& context) {
    flow[Slot::h] = kernels::rms_norm(flow.take(Slot::x), context.weights[0].value, eps);
  };
}

CellFunction linear(Slot into) {
  return [into](Flow& flow, const CellContext& context) {
    flow[into] = context.operations->product(flow.take(Slot::h), context.weights[0]);
  };
}

void gated_linear(Flow& flow, const CellContext& context) {
  const auto gate_up = context.operations->products(flow.take(Slot::h), context.weights);
  flow[Slot::h] = kernels::swiglu(gate_up[0], gate_up[1]);
  context.operations->remakable(flow[Slot::h],
                                [gate_up] { return kernels::swiglu(gate_up[0], gate_up[1]); });
}

/// After the sum over tensor-parallel ranks, so that the bias is added once.
void add_bias(Flow& flow, const CellContext& context) {
  flow[Slot::h] = flow[Slot::h] + context.weights[1].value;
}

}  // namespace

CellFunctions CellMaker::functions_of(const CellSpec& cell) const {
  CellFunctions made{forward_of(cell), {}};
  if (cell.kind == CellKind::linear && cell.biased) made.epilogue = add_bias;
  if (cell.kind == CellKind::dispatch) made.arrived = dispatched();
  if (cell.kind == CellKind::combine) made.arrived = combined();
  return made;
}

CellFunction CellMaker::forward_of(const CellSpec& cell) const {
  switch (cell.kind) {
    case CellKind::embedding:
      return embedding();
    case CellKind::norm:
      return norm(shape_.norm_eps, Slot::h);
    case CellKind::mixture_norm:
      return norm(shape_.norm_eps, Slot::m);
    case CellKind::final_norm:
      return final_norm(shape_.norm_eps);
    case CellKind::projections:
      return projections(cell.biased);
    case CellKind::latents:
      return latents();
    case CellKind::latent_projections:
      return latent_projections();
    case CellKind::attention:
      return attention(cell.layer);
    case CellKind::linear:
      return linear(Slot::h);
    case CellKind::gated_linear:
      return gated_linear;
    case CellKind::router:
      return router(cell.mixture);
    case CellKind::dispatch:
      return dispatch();
    case CellKind::experts:
      return experts();
    case CellKind::combine:
      return combine();
    case CellKind::output:
      return linear(Slot::logits);
  }
  TESSERA_EXPECT(false, "cell {} has no known kind", cell.name);
  return {};
}

Model make_decoder(const DecoderShape& shape, std::int64_t max_positions, at::ScalarType dtype,
                   at::Device device, std::int64_t trained_positions) {
  DecoderShape settled = shape;
  settled.settle_yarn(trained_positions > 0 ? trained_positions : max_positions);
  const Angles angles = rotary_angles(settled, max_positions, kernels::accumulation_type(dtype));
  Model model{spec_of(shape), {}, {angles.cos.to(device), angles.sin.to(device)}};
  const CellMaker maker(settled, model);
  for (const CellSpec& cell : model.cells) model.functions.push_back(maker.functions_of(cell));
  return model;
}

}  // namespace tessera::model
