// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/unit.hpp"

#include <algorithm>

#include "tessera/base/error.hpp"
#include "tessera/base/name_pattern.hpp"
#include "tessera/kernels/operation.hpp"
#include "tessera/parallel/linear_cross_entropy.hpp"
#include "tessera/parallel/tensor_parallel.hpp"
#include "unit_forward.hpp"

namespace tessera::parallel {
namespace {

using model::Boundary;
using model::Flow;
using model::kSlotList;
using model::Slot;

model::Weight find_weight(const model::ParamSpec* spec, const std::vector<ShardGroup*>& groups) {
  for (ShardGroup* group : groups)
    if (const int index = find(group->params(), spec); index >= 0) {
      const ShardedParam& param = group->params()[static_cast<std::size_t>(index)];
      return {param.leaf, param.place.local_offset[0]};
    }
  contract_violated("found", __FILE__, __LINE__, "no group of the unit holds " + spec->fqn);
}

}  // namespace

Unit::Unit(const model::Model& model, const model::UnitSpec& spec, std::vector<ShardGroup*> groups,
           const TensorParallel& tensor, std::span<const at::Tensor> buffers,
           std::span<const std::string> remade)
    : name_(spec.name),
      groups_(std::move(groups)),
      tensor_(tensor),
      balance_(model.balance),
      vocab_(model.dimensions.vocab) {
  for (int i = spec.begin; i < spec.end; ++i) {
    const model::CellSpec& cell = model.cells[static_cast<std::size_t>(i)];
    Step step{&cell, &model.functions[static_cast<std::size_t>(i)], {}, {}, {}, 0};
    for (const int param : cell.params) {
      const model::ParamSpec& weight = model.params[static_cast<std::size_t>(param)];
      step.weights.push_back(find_weight(&weight, groups_));
      if (std::ranges::any_of(
              remade, [&](const std::string& module) { return is_of_module(weight.fqn, module); }))
        step.remade.push_back(step.weights.back().value.unsafeGetTensorImpl());
    }
    for (const int buffer : cell.buffers)
      step.buffers.push_back(buffers[static_cast<std::size_t>(buffer)]);
    steps_.push_back(std::move(step));
  }
  if (!steps_.back().weights.empty()) vocab_begin_ = steps_.back().weights[0].row_begin;
  if (tensor_.exchange->ranks() > 1) hide_dispatch();
}

/// A shared expert, whose cells precede the router, comes after dispatch.
void Unit::hide_dispatch() {
  const auto first = [this](model::CellKind kind) {
    return std::ranges::find_if(steps_, [kind](const Step& s) { return s.cell->kind == kind; });
  };
  const auto router = first(model::CellKind::router), dispatch = first(model::CellKind::dispatch);
  const auto shared =
      std::find_if(steps_.begin(), router, [](const Step& s) { return s.cell->source == Slot::m; });
  if (dispatch == steps_.end() || shared == router) return;
  dispatch->beside = static_cast<std::size_t>(router - shared);
  std::rotate(shared, router, dispatch + 1);
}

void Unit::start_unshard() {
  for (ShardGroup* group : groups_) group->start_unshard();
}
void Unit::finish_unshard() {
  for (ShardGroup* group : groups_) group->finish_unshard();
}
void Unit::reshard() {
  for (ShardGroup* group : groups_) group->reshard();
}

void Unit::reshard_within(comm::Communicator& inner, comm::Communicator* experts) {
  for (ShardGroup* group : groups_) {
    comm::Communicator* among = has_experts(*group) ? experts : &inner;
    if (!among)
      group->reshard();
    else if (among->size() > 1)
      group->reshard_within(*among);
  }
}

/// What a product with a part of the weight's rows or columns reads.
at::Tensor Unit::for_product(const at::Tensor& tokens) const {
  return tensor_.sequence ? gather_tokens(tokens, tensor_.tp) : share_tokens(tokens, tensor_.tp);
}

/// A router and its experts get this rank's part of the tokens or, where ranks share each expert,
/// all of them.
at::Tensor Unit::for_experts(const at::Tensor& tokens) const {
  if (tensor_.experts_cut) return for_product(tokens);
  return tensor_.sequence ? tokens : own_tokens(tokens, tensor_.tp);
}

at::Tensor Unit::from_experts(const at::Tensor& tokens) const {
  if (tensor_.experts_cut)
    return tensor_.sequence ? reduce_tokens(tokens, tensor_.tp) : sum_tokens(tokens, tensor_.tp);
  return tensor_.sequence ? tokens : all_tokens(tokens, tensor_.tp);
}

/// In front of a cell that needs the tokens of all ranks: they are gathered here, or by its
/// products.
void Unit::gather(const model::CellSpec& cell, Flow& flow, UnitOperations& operations) const {
  comm::Communicator& tp = tensor_.tp;
  if (cell.input == Boundary::to_experts) flow[Slot::m] = for_experts(flow.take(Slot::m));
  if (cell.input != Boundary::gather || tp.size() == 1) return;
  if (tensor_.chunks.count > 0 && !cell.splits_input) {
    operations.gather_next(tensor_.chunks);
    return;
  }
  const at::Tensor h = flow.take(Slot::h);
  flow[Slot::h] = for_product(h);
  if (tensor_.sequence)
    operations.remakable(flow[Slot::h], [h, &tp] { return gather_tokens(h, tp); });
}

/// After a cell that leaves partial sums, unless its product has summed them.
void Unit::reduce(const model::CellSpec& cell, Flow& flow, UnitOperations& operations) const {
  comm::Communicator& tp = tensor_.tp;
  if (cell.output == Boundary::from_experts) flow[Slot::h] = from_experts(flow.take(Slot::h));
  if (cell.output != Boundary::reduce || tp.size() == 1 || operations.take_reduced()) return;
  const Slot slot = cell.residual ? Slot::h : Slot::x;
  const at::Tensor partial = flow.take(slot);
  flow[slot] = tensor_.sequence ? reduce_tokens(partial, tp) : sum_tokens(partial, tp);
}

/// A cell's computation up to where its rows travel. The context is then the cell's.
void Unit::begin(const Step& step, Flow& flow, model::CellContext& context,
                 UnitOperations& operations) const {
  const model::CellSpec& cell = *step.cell;
  if (cell.source) flow[Slot::h] = flow[*cell.source];
  gather(cell, flow, operations);
  if (cell.output == Boundary::reduce && tensor_.tp.size() > 1 && tensor_.chunks.count > 0)
    operations.reduce_next(tensor_.chunks);
  operations.remake_products(step.remade);
  context.exchange = tensor_.exchange;
  context.expert_parts = tensor_.experts_cut ? tensor_.tp.size() : 1;
  context.weights = step.weights;
  context.buffers = step.buffers;
  step.functions->forward(flow, context);
}

/// The rest of it. A norm that follows adds the residual itself.
void Unit::end(const Step& step, const Step* next, Flow& flow, const model::CellContext& context,
               UnitOperations& operations) const {
  const model::CellSpec& cell = *step.cell;
  if (step.functions->arrived) step.functions->arrived(flow, context);
  reduce(cell, flow, operations);
  operations.expect_done(cell.name);
  if (step.functions->epilogue) step.functions->epilogue(flow, context);
  const bool norm_adds = next && (next->cell->kind == model::CellKind::norm ||
                                  next->cell->kind == model::CellKind::mixture_norm);
  if (cell.residual && !norm_adds) flow[Slot::x] = flow[Slot::x] + flow.take(Slot::h);
}

TapeEntry Unit::forward(const Flow& in, const model::CellContext& context, const LossInput* loss,
                        Recompute recompute) const {
  UnitForward pass(*this, in, context, loss, recompute);
  while (pass.advance()) tensor_.exchange->meanwhile();
  return pass.take();
}

/// Tokens of a chunk of the loss that the last cell, the output layer, is computed with; 0: logits
/// are whole.
std::int64_t Unit::loss_chunk(const LossInput& loss) const {
  const at::Tensor& weight = steps_.back().weights[0].value;
  return plan::loss_chunk_tokens(tensor_.fused_loss,
                                 {loss.labels.size(0), vocab_ / tensor_.tp.size(), weight.size(1),
                                  static_cast<std::int64_t>(weight.element_size())});
}

/// Of the hidden states, which are gathered as before any product.
TokenLoss Unit::fused_loss(const Step& output, Flow& flow, const LossInput& loss,
                           std::int64_t chunk_tokens) const {
  return linear_cross_entropy(for_product(flow.take(Slot::h)), output.weights[0].value, loss.labels,
                              {vocab_begin_, loss.scale, chunk_tokens, tensor_.tp});
}

TokenLoss Unit::loss_of(const at::Tensor& logits, const LossInput& loss) const {
  if (tensor_.vocabulary_loss)
    return vocabulary_parallel_loss(logits, loss.labels, vocab_begin_, loss.scale, tensor_.tp);
  return vocabulary_parallel_loss(gather_columns(logits, tensor_.tp), loss.labels, 0, loss.scale,
                                  *alone_);
}

/// Where ranks of tp share each expert, all of them saw every token: each takes its part of what
/// they all computed.
void Unit::add_balance(TapeEntry& entry, const at::Tensor& slot, const LossInput& loss) const {
  const auto sum = [this](const at::Tensor& counts) {
    return tensor_.microbatch ? all_reduced(counts, *tensor_.microbatch) : counts;
  };
  const int holders = tensor_.microbatch ? tensor_.microbatch->size() : 1,
            copies = tensor_.experts_cut ? tensor_.tp.size() : 1;
  const std::int64_t tokens =
      loss.labels.size(0) * holders / (tensor_.experts_cut ? 1 : tensor_.tp.size());
  const at::Tensor part =
      model::balance_loss(balance_, slot, tokens, sum) * (loss.balance_scale / copies);
  entry.balance = part.detach();
  entry.loss = entry.loss + part.to(entry.loss.scalar_type());
}

Flow Unit::backward(TapeEntry entry, const model::CellContext& context,
                    const Flow& out_gradients) const {
  if (entry.recompute == Recompute::unit) entry = forward(entry.in, context, nullptr);
  entry.remakes.restore();
  std::vector<at::Tensor> roots, gradients;
  if (entry.loss.defined()) {
    roots.push_back(entry.loss);
    gradients.push_back(entry.one);
  }
  for (const Slot slot : kSlotList) {
    if (!entry.out[slot].defined() || !out_gradients[slot].defined() ||
        !entry.out[slot].requires_grad())
      continue;
    roots.push_back(entry.out[slot]);
    gradients.push_back(out_gradients[slot]);
  }
  if (!roots.empty())
    kernels::run_backward(roots, gradients);  // a frozen embedding has nothing to do
  Flow result;
  for (const Slot slot : kSlotList)
    if (entry.in[slot].defined() && entry.in[slot].requires_grad())
      result[slot] = entry.in[slot].grad();
  return result;
}

}  // namespace tessera::parallel
