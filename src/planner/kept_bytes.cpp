// SPDX-License-Identifier: Apache-2.0
#include "kept_bytes.hpp"

#include <algorithm>

namespace tessera::planner {
namespace {

/// Elements on this rank, and bytes of an element: `wide` where a kernel keeps the type of
/// computation, `low` where it keeps the input of a product that may be cast.
struct Sizes {
  double wide, low, tokens, row, queries, keys;

  explicit Sizes(const Workload& work)
      : wide(work.precision == Precision::f32 ? 4 : 2),
        low(keeps_wide(work.precision) ? wide : 1),
        tokens(work.local_tokens() / work.tp),
        row(static_cast<double>(work.model.dim) *
            (work.sequence_parallel ? tokens : work.local_tokens())),
        queries(static_cast<double>(work.model.heads * work.model.head_dim) * tokens),
        keys(static_cast<double>(work.model.kv_heads * work.model.head_dim) * tokens) {}

  static bool keeps_wide(Precision precision) {
    return precision == Precision::f32 || precision == Precision::bf16 ||
           precision == Precision::fp8_torchao;
  }
};

double kept_by_latent_attention(const Workload& work, const Sizes& size, Recompute mode) {
  const model::LatentAttention& latent = *work.model.latent;
  const double heads = static_cast<double>(work.model.heads);
  const double up =
      mode == Recompute::latent_up
          ? 0
          : heads *
                static_cast<double>(3 * latent.nope_dim + 2 * latent.rope_dim + latent.value_dim) *
                size.tokens;
  const double ranks =
      static_cast<double>(2 * latent.query_rank + 2 * latent.rank + latent.rope_dim);
  return size.wide * ranks * size.tokens + size.wide * up +
         (size.wide + size.low / 2) * heads * static_cast<double>(latent.value_dim) * size.tokens;
}

double kept_by_attention(const Workload& work, const Sizes& size, Recompute mode) {
  if (work.model.latent) return kept_by_latent_attention(work, size, mode);
  double sum = size.wide * (size.queries + 2 * size.keys);
  sum += (size.low < size.wide ? size.wide + size.low : size.wide) * size.queries;
  if (work.model.qk_norm) sum += size.wide * (size.queries + size.keys);
  return sum;
}

double kept_by_mixture(const Workload& work, const Stack& stack, const Sizes& size) {
  const ExpertShape& shape = *work.model.mixture;
  const double copies =
      static_cast<double>(shape.top_k) * size.tokens * work.etp * work.expert_rows();
  const double products = work.model.gated ? 2 : 1;
  const double expert =
      (products * size.wide + size.low) * static_cast<double>(shape.hidden) / work.etp +
      (size.low + (stack.keeps_expert_outputs ? size.wide : 0)) *
          static_cast<double>(work.model.dim);
  const double shared =
      (2 * size.wide + size.low) * static_cast<double>(shape.shared) * size.tokens;
  return copies * expert + shared + 4 * static_cast<double>(shape.experts) * size.tokens;
}

/// More than a rank's part of the tokens, in front of one product.
double kept_of_gathered(const Workload& work, const Stack& stack, const Sizes& size) {
  const bool gathers = stack.keeps_gathered && !work.async_tp && work.sequence_parallel;
  return gathers ? size.low * size.row * (work.tp - 1) : 0;
}

}  // namespace

double kept_bytes(const Workload& work, const Stack& stack, bool mixture, Recompute mode) {
  const Sizes size(work);
  const double hidden = static_cast<double>(work.model.hidden) * size.tokens;
  if (mode == Recompute::full) return size.wide * size.row;
  if (mode == Recompute::save_qkv) return size.wide * (size.row + size.queries + 2 * size.keys);
  const bool op = mode == Recompute::every_second_mm;
  if (op && stack.op_remakes_products)  // the block's input, wq, wv, attention, w1 and w2
    return size.wide * (2 * size.row + 2 * size.queries + size.keys + hidden);
  // Two norms: their inputs, and their outputs for products.
  const double normed = op ? 0 : size.low * size.row,
               gathered = op ? 0 : kept_of_gathered(work, stack, size);
  const double attention =
      2 * (size.wide * size.row + normed) + gathered + kept_by_attention(work, size, mode);
  if (mixture) return attention + kept_by_mixture(work, stack, size);
  if (mode == Recompute::feed_forward) return attention;
  const double activated = op ? 0 : size.low * hidden;
  return attention + gathered + (work.model.gated ? 2 : 1) * size.wide * hidden + activated;
}

double kept_bytes(const Workload& work, const Stack& stack, bool mixture) {
  const double share = work.recomputed_blocks;
  const double kept = kept_bytes(work, stack, mixture, work.recompute);
  return share < 1 ? share * kept + (1 - share) * kept_bytes(work, stack, mixture, Recompute::none)
                   : kept;
}

namespace {

/// All ranks' keys and values, and their gradients in float32; in a ring, those that are here and
/// those that travel.
double working_of_keys(const Workload& work, const Sizes& size) {
  if (work.cp == 1) return 0;
  const double keys = 2 * size.keys;
  return work.gathers_keys ? keys * work.cp * (size.wide + 4) : keys * (2 * size.wide + 3 * 4);
}

}  // namespace

double working_bytes(const Workload& work, const Stack& stack, bool mixture) {
  const Sizes size(work);
  const double recomputed = kept_bytes(work, stack, mixture, Recompute::none) -
                            kept_bytes(work, stack, mixture, work.recompute);
  const double hidden =
      mixture ? static_cast<double>(work.model.mixture->hidden * work.model.mixture->top_k)
              : static_cast<double>(work.model.hidden);
  const double gradients = size.wide * (3 * hidden * size.tokens + 2 * size.row);
  double gathers = 0;  // whole sequences around products
  if (work.tp > 1) gathers = work.recompute == Recompute::none ? 3 : (work.async_tp ? 4 : 6);
  if (stack.keeps_gathered && !work.async_tp)
    gathers = std::max(0.0, gathers - 4);  // those are counted as kept
  return (std::max(0.0, recomputed) + gradients) * stack.working_factor +
         gathers * size.wide * static_cast<double>(work.model.dim) * work.local_tokens() +
         working_of_keys(work, size);
}

double loss_bytes(const Workload& work, const Stack& stack) {
  const int cut = work.loss_parallel ? work.tp : 1;
  const double columns = static_cast<double>(work.model.vocab) / cut;
  const double type = work.precision == Precision::f32 ? 4 : 2,
               logit = stack.loss_copies > 0 ? stack.loss_copies * type : stack.loss_bytes;
  // All columns are gathered by rank, and joined.
  const bool joins = stack.loss_copies > 0 && !work.loss_parallel && work.tp > 1;
  if (work.loss_chunk_tokens == 0)
    return (logit + (joins ? type * (1 + 1.0 / work.tp) : 0)) * work.local_tokens() * columns;
  // The gradient of the weight exists from forward on: a float32 sum, and what is rounded of it.
  const double gradient = work.precision == Precision::f32 ? 4 : 6;
  return columns * (logit * static_cast<double>(work.loss_chunk_tokens) +
                    gradient * static_cast<double>(work.model.dim));
}

double kept_bytes(const Workload& work, const Stack& stack, const StageContent& stage) {
  const bool last_mixed = work.model.is_mixture(work.model.layers - 1);
  double sum = 0;
  if (stage.dense > 0) sum += stage.dense * kept_bytes(work, stack, false);
  if (stage.mixtures > 0) sum += stage.mixtures * kept_bytes(work, stack, true);
  // The output, which Megatron gives back when it is sent.
  const bool sends = work.pipeline.ranks() > 1 && !stage.head && !work.distributed_optimizer;
  if (sends) sum += Sizes(work).wide * Sizes(work).row;
  return sum + static_cast<double>(stage.predictors) * kept_bytes(work, stack, last_mixed);
}

}  // namespace tessera::planner
