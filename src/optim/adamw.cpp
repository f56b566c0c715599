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

/// Can one sweep take both? Random bits have a key of each parameter.
bool join(const ParamState& before, const ParamState& next) {
  using kernels::follows;
  return before.weight_decay == next.weight_decay && before.lr_scale == next.lr_scale &&
         follows(before.param, next.param) && follows(before.grad, next.grad) &&
         follows(before.exp_avg, next.exp_avg) && follows(before.exp_avg_sq, next.exp_avg_sq) &&
         follows(before.compute_copy, next.compute_copy);
}

}  // namespace

AdamW::AdamW(const AdamWOptions& options) : options_(options) {
  require_beta("beta1", options.beta1);
  require_beta("beta2", options.beta2);
  require(options.eps >= 0.0, ExitCode::usage, "optimizer.eps is {}; it must not be negative",
          options.eps);
}

void AdamW::step(std::span<ParamState> params, double lr, std::int64_t t,
                 double clip_coefficient) const {
  const auto count = static_cast<double>(t);
  kernels::AdamWScalars scalars{.beta1 = options_.beta1,
                                .beta2 = options_.beta2,
                                .eps = options_.eps,
                                .bias_correction1 = 1.0 - std::pow(options_.beta1, count),
                                .bias_correction2 = 1.0 - std::pow(options_.beta2, count),
                                .gradient_scale = clip_coefficient};
  for (std::size_t i = 0; i < params.size(); ++i) {
    const ParamState& p = params[i];
    scalars.lr = lr * p.lr_scale;
    scalars.weight_decay = p.weight_decay;
    if (rounds_at_random(p)) {
      const kernels::StochasticRounding rounding{rounding_key(*options_.rounding_seed, p.fqn, t),
                                                 p.whole, p.box};
      kernels::adamw_sweep(p.param, p.grad, p.exp_avg, p.exp_avg_sq, scalars, p.compute_copy,
                           &rounding);
      continue;
    }
    std::int64_t count = p.param.numel();
    for (; i + 1 < params.size() && join(params[i], params[i + 1]); ++i)
      count += params[i + 1].param.numel();
    const auto line = [count](const at::Tensor& first) { return kernels::line_from(first, count); };
    kernels::adamw_sweep(line(p.param), line(p.grad), line(p.exp_avg), line(p.exp_avg_sq), scalars,
                         line(p.compute_copy));
  }
}

bool AdamW::rounds_at_random(const ParamState& state) const {
  return options_.rounding_seed && (state.param.scalar_type() == at::kBFloat16 ||
                                    state.exp_avg.scalar_type() == at::kBFloat16);
}

}  // namespace tessera::optim
