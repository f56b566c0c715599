// SPDX-License-Identifier: Apache-2.0
#include "tessera/planner/architecture.hpp"

namespace tessera::planner {
namespace {

double real(std::int64_t value) { return static_cast<double>(value); }

double matrices(const Architecture& model) { return model.gated ? 3 : 2; }

double router_params(const Architecture& model) {
  return real(model.mixture->experts) * real(model.dim);
}

double shared_params(const Architecture& model) {
  return matrices(model) * real(model.dim) * real(model.mixture->shared);
}

/// Of a block's products, those that one token passes.
double passed_params(const Architecture& model, bool mixture) {
  if (!mixture) return model.attention_params() + model.dense_params();
  return model.attention_params() + real(model.mixture->top_k) * model.expert_params() +
         shared_params(model) + router_params(model);
}

}  // namespace

bool Architecture::is_mixture(std::int64_t layer) const {
  return mixture && layer >= mixture->first_dense && (layer + 1) % mixture->every == 0;
}

std::int64_t Architecture::mixture_layers() const {
  std::int64_t count = 0;
  for (std::int64_t layer = 0; layer < layers; ++layer) count += is_mixture(layer) ? 1 : 0;
  return count;
}

double Architecture::attention_params() const {
  if (!latent) return real(dim) * real(head_dim) * (2 * real(heads) + 2 * real(kv_heads));
  const double query_width = real(heads) * real(latent->nope_dim + latent->rope_dim);
  const double rank = real(latent->query_rank);
  const double queries = rank > 0 ? real(dim) * rank + rank * query_width : real(dim) * query_width;
  const double keys = real(dim) * real(latent->rank + latent->rope_dim) +
                      real(latent->rank) * real(heads) * real(latent->nope_dim + latent->value_dim);
  return queries + keys + real(heads) * real(latent->value_dim) * real(dim);
}

double Architecture::dense_params() const { return matrices(*this) * real(dim) * real(hidden); }

double Architecture::expert_params() const {
  return matrices(*this) * real(dim) * real(mixture->hidden);
}

double Architecture::block_params(bool mixed) const {
  const double shared = attention_params() + 2 * real(dim);
  if (!mixed) return shared + dense_params();
  return shared + real(mixture->experts) * expert_params() + shared_params(*this) +
         router_params(*this);
}

double Architecture::embedding_params() const {
  return real(dim) * real(vocab + learned_positions);
}

double Architecture::head_params() const { return real(dim) * real(vocab); }

double Architecture::params() const {
  const double mixed = real(mixture_layers());
  const double blocks =
      (mixed > 0 ? mixed * block_params(true) : 0) + (real(layers) - mixed) * block_params(false);
  return blocks + embedding_params() + (tied ? 0 : head_params());
}

double Architecture::attention_width() const {
  if (!latent) return 2 * real(heads) * real(head_dim);
  return real(heads) * real(latent->nope_dim + latent->rope_dim + latent->value_dim);
}

double Architecture::flops(std::int64_t seq, bool causal) const {
  const double mixed = real(mixture_layers()), more = real(predictors);
  double passed = (mixed > 0 ? mixed * passed_params(*this, true) : 0) +
                  (real(layers) - mixed) * passed_params(*this, false);
  passed += more * passed_params(*this, is_mixture(layers - 1)) + (1 + more) * head_params() +
            more * 2 * real(dim) * real(dim);
  const double attention = attention_width() * real(seq) * (real(layers) + more);
  return 6 * (passed + attention * (causal ? 0.5 : 1));
}

Architecture architecture_of(const model::DecoderShape& shape) {
  Architecture out{.name = shape.name,
                   .dim = shape.dim,
                   .layers = shape.layers,
                   .heads = shape.heads,
                   .kv_heads = shape.kv_heads,
                   .head_dim = shape.head_dim,
                   .hidden = shape.hidden,
                   .vocab = shape.vocab,
                   .tied = shape.tied,
                   .qk_norm = shape.qk_norm,
                   .window = shape.window,
                   .latent = shape.latent,
                   .mixture = {}};
  if (!shape.mixture) return out;
  const model::MixtureShape& from = *shape.mixture;
  out.mixture = ExpertShape{from.routing.experts, from.routing.top_k, from.hidden,
                            from.shared * from.hidden, from.first_dense};
  out.mixture->biased = from.biased;
  return out;
}

}  // namespace tessera::planner
