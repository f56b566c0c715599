// SPDX-License-Identifier: Apache-2.0
#include "tessera/optim/adamw.hpp"

#include <cmath>

#include "tessera/base/error.hpp"
#include "tessera/kernels/adamw.hpp"
#include "tessera/kernels/neighbours.hpp"
#include "tessera/kernels/philox.hpp"

namespace tessera::optim {
namespace {

void require_beta(const char* name, double beta) {
  require(beta >= 0.0 && beta < 1.0, ExitCode::usage, "optimizer.{} is {}; it must be in [0, 1)",
          name, beta);
}

/// The key of parameter `fqn`'s random bits in update `t`.
std::uint64_t rounding_key(std::uint64_t seed, const std::string& fqn, std::int64_t t) {
  const kernels::Philox philox{.seed = seed, .stream = kernels::stream_of("rounding " + fqn)};
  const kernels::PhiloxBlock block = philox.block(static_cast<std::uint64_t>(t));
  return block[0] | std::uint64_t{block[1]} << 32;
}

/// Does `next` follow `before` in memory, with the same scalars?
bool continues(const ParamState& before, const ParamState& next) {
  using kernels::follows;
  return before.weight_decay == next.weight_decay && follows(before.param, next.param) &&
         follows(before.grad, next.grad) && follows(before.exp_avg, next.exp_avg) &&
         follows(before.exp_avg_sq, next.exp_avg_sq) &&
         follows(before.compute_copy, next.compute_copy);
}

void expect_one_shape(const ParamState& state) {
  const auto fits = [&](const at::Tensor& of) {
    return of.is_contiguous() && of.sizes() == state.param.sizes();
  };
  TESSERA_EXPECT(fits(state.param) && fits(state.grad) && fits(state.exp_avg) &&
                     fits(state.exp_avg_sq) &&
                     (!state.compute_copy.defined() || fits(state.compute_copy)),
                 "the tensors of {} are not contiguous, or not of one shape", state.fqn);
}

}  // namespace

AdamW::AdamW(const AdamWOptions& options) : options_(options) {
  require_beta("beta1", options.beta1);
  require_beta("beta2", options.beta2);
  require(options.eps >= 0.0, ExitCode::usage, "optimizer.eps is {}; it must not be negative",
          options.eps);
}

void AdamW::step(std::span<const ParamState> params, double lr, std::int64_t t,
                 double clip_coefficient) const {
  TESSERA_EXPECT(t >= 1, "updates are counted from 1, not from {}", t);
  for (const ParamState& state : params) expect_one_shape(state);
  const auto count = static_cast<double>(t);
  kernels::AdamWScalars scalars{.lr = lr,
                                .beta1 = options_.beta1,
                                .beta2 = options_.beta2,
                                .eps = options_.eps,
                                .coupled_decay = options_.coupled_decay,
                                .bias_correction1 = 1.0 - std::pow(options_.beta1, count),
                                .bias_correction2 = 1.0 - std::pow(options_.beta2, count),
                                .gradient_scale = clip_coefficient};
  // Random bits have a key of each parameter.
  const auto joins = [this](const ParamState& before, const ParamState& next) {
    return !rounds_at_random(before) && !rounds_at_random(next) && continues(before, next);
  };
  kernels::for_lines(params, joins, [&](std::span<const ParamState> line) {
    const ParamState& p = line.front();
    scalars.weight_decay = p.weight_decay;
    kernels::StochasticRounding rounding;
    const bool rounds = rounds_at_random(p);
    if (rounds) rounding = {rounding_key(*options_.rounding_seed, p.fqn, t), p.whole, p.box};
    std::int64_t elements = 0;
    for (const ParamState& each : line) elements += each.param.numel();
    const auto all = [elements](const at::Tensor& of) { return kernels::line_from(of, elements); };
    kernels::adamw_sweep(all(p.param), all(p.grad), all(p.exp_avg), all(p.exp_avg_sq), scalars,
                         all(p.compute_copy), rounds ? &rounding : nullptr);
  });
}

bool AdamW::rounds_at_random(const ParamState& state) const {
  return options_.rounding_seed && (state.param.scalar_type() == at::kBFloat16 ||
                                    state.exp_avg.scalar_type() == at::kBFloat16);
}

}  // namespace tessera::optim
