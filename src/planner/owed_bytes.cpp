// SPDX-License-Identifier: Apache-2.0
#include "kept_bytes.hpp"
#include "shares.hpp"

namespace tessera::planner {
namespace {

/// Elements on this rank. Products with tensor-parallel weights read, and give, whole sequences.
struct Rows {
  double tokens, whole, queries, keys;

  explicit Rows(const Workload& work)
      : tokens(work.local_tokens() / work.tp),
        whole(static_cast<double>(work.model.dim) * work.local_tokens()),
        queries(static_cast<double>(work.model.heads * work.model.head_dim) * tokens),
        keys(static_cast<double>(work.model.kv_heads * work.model.head_dim) * tokens) {}
};

/// Of all products but the first's inputs and the last's gradients, which all attentions have.
double owed_by_latent_attention(const Workload& work, double tokens) {
  const model::LatentAttention& latent = *work.model.latent;
  const double heads = static_cast<double>(work.model.heads);
  const double each =
      static_cast<double>(2 * latent.nope_dim + latent.rope_dim + 2 * latent.value_dim);
  const double ranks =
      static_cast<double>(2 * latent.query_rank + 2 * latent.rank + latent.rope_dim);
  return (heads * each + ranks) * tokens;
}

double owed_by_mixture(const Workload& work, const Rows& rows) {
  const ExpertShape& shape = *work.model.mixture;
  const double copies =
      static_cast<double>(shape.top_k) * rows.tokens * work.etp * work.expert_rows();
  const double products = work.model.gated ? 3 : 2;
  const double expert = products * static_cast<double>(shape.hidden) / work.etp +
                        2 * static_cast<double>(work.model.dim);
  const double shared = 3 * static_cast<double>(shape.shared) * rows.tokens;
  const double row = static_cast<double>(work.model.dim) * rows.tokens;
  return copies * expert + shared + (shape.shared > 0 ? 2 : 1) * row;
}

double owed_by_block(const Workload& work, bool mixture) {
  const double bytes = work.precision == Precision::f32 ? 4 : 2;
  const Rows rows(work);
  const double attention = work.model.latent ? owed_by_latent_attention(work, rows.tokens)
                                             : 2 * (rows.queries + rows.keys);
  const double hidden = static_cast<double>(work.model.hidden) * rows.tokens;
  const double forward =
      mixture ? owed_by_mixture(work, rows) : 2 * rows.whole + (work.model.gated ? 3 : 2) * hidden;
  return bytes * (2 * rows.whole + attention + forward);
}

}  // namespace

/// The logits, or then their gradient, and the inputs; or the weight's gradient, which a fused loss
/// makes in the forward.
double waiting_logits_bytes(const Workload& work) {
  const double bytes = element_bytes(work.precision);
  if (work.loss_chunk_tokens > 0) return bytes * work.model.head_params() / work.tp;
  const double columns = static_cast<double>(work.model.vocab) / (work.loss_parallel ? work.tp : 1);
  return bytes * work.local_tokens() * (columns + static_cast<double>(work.model.dim));
}

double owed_bytes(const Workload& work, const StageContent& stage) {
  double sum = 0;
  if (stage.dense > 0) sum += stage.dense * owed_by_block(work, false);
  if (stage.mixtures > 0) sum += stage.mixtures * owed_by_block(work, true);
  if (stage.predictors > 0)
    sum += static_cast<double>(stage.predictors) *
           owed_by_block(work, work.model.is_mixture(work.model.layers - 1));
  // Its gradient is made with that of the tokens in front of it.
  if (stage.embedding) sum += element_bytes(work.precision) * params_of_embedding(work).all();
  return sum + (stage.head ? waiting_logits_bytes(work) : 0);
}

}  // namespace tessera::planner
