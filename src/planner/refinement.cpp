// SPDX-License-Identifier: Apache-2.0
#include "tessera/planner/refinement.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string_view>

#include "physics.hpp"
#include "tessera/planner/run_figures.hpp"

namespace tessera::planner {
namespace {

// Errors of a step: close enough, and less than what one factor more is worth.
constexpr double kCloseEnough = 0.03, kNoticed = 0.01;

void scale(Host& node, Rate rate, double factor) {
  if (rate == Rate::memory) node.copy_bytes_per_second *= factor;
  if (rate == Rate::links) node.rank_bytes_per_second *= factor;
  if (rate != Rate::products) return;
  for (double Host::*value :
       {&Host::f32_flops_per_second, &Host::bf16_flops_per_second,
        &Host::f32_operand_bytes_per_second, &Host::bf16_operand_bytes_per_second,
        &Host::attention_forward, &Host::attention_backward, &Host::scores_forward,
        &Host::scores_backward})
    node.*value *= factor;
}

void scale(Machine& machine, Rate rate, double factor) {
  if (rate == Rate::memory) machine.hbm_bytes_per_second *= factor;
  if (rate == Rate::links)
    for (double Machine::*value :
         {&Machine::nvlink_bytes_per_second, &Machine::nic_bytes_per_second})
      machine.*value *= factor;
  if (rate != Rate::products) return;
  for (std::size_t f = 0; f < kFormats; ++f)
    machine.ceiling[f] =
        std::min(machine.ceiling[f] * factor, physics::kMostOfPeak * machine.peak[f]);
  for (AttentionRate& attention : machine.attention) {
    attention.forward *= factor;
    attention.backward *= factor;
  }
}

double seconds_of(const metrics::RunFigures& figures, Rate rate) {
  double sum = 0;
  for (const auto& [part, seconds] : figures.parts)
    if (rate_of(part) == rate) sum += seconds;
  return sum;
}

/// Finds factors of some rates. Keeps references to what it is given.
class Fit {
 public:
  Fit(const Workload& work, const Machine& machine, const Stack& stack,
      const metrics::RunFigures& measured)
      : work_(work), machine_(machine), stack_(stack), measured_(measured) {}

  Refinement best() const {
    Refinement out{{}, price_with({})};
    double least = error_of(out.price);
    for (std::size_t count = 1; count <= kEachRate.size() && least > kCloseEnough; ++count) {
      Refinement other = closest_of(count);
      if (error_of(other.price) > least - kNoticed) continue;
      least = error_of(other.price);
      out = std::move(other);
    }
    return out;
  }

 private:
  Price price_with(const std::vector<Correction>& corrections) const {
    return price(work_, corrected(machine_, corrections), stack_);
  }

  double error_of(const Price& price) const {
    return std::abs(price.step_seconds / measured_.step_seconds - 1);
  }

  Refinement closest_of(std::size_t count) const {
    std::optional<Refinement> out;
    for (unsigned set = 1; set < 1U << kEachRate.size(); ++set) {
      if (static_cast<std::size_t>(std::popcount(set)) != count) continue;
      Refinement other = fitted(set);
      if (!out || error_of(other.price) < error_of(out->price)) out = std::move(other);
    }
    return *out;
  }

  /// Rates act on each other's parts: each is found again after the others.
  Refinement fitted(unsigned set) const {
    std::vector<Correction> corrections;
    for (const Rate rate : kEachRate)
      if ((set >> static_cast<unsigned>(rate) & 1U) != 0) corrections.push_back({rate, 1});
    for (int again = 0; again < 2; ++again)
      for (Correction& one : corrections) find(corrections, one);
    return {corrections, price_with(corrections)};
  }

  /// A part takes less time the greater its rate is.
  void find(const std::vector<Correction>& all, Correction& one) const {
    constexpr int kHalvings = 14;
    const double wanted = seconds_of(measured_, one.rate);
    double least = -std::log(kMostCorrected), most = -least;
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = (least + most) / 2;
      one.factor = std::exp(middle);
      const bool slow = seconds_of(figures_of(price_with(all), machine_), one.rate) > wanted;
      (slow ? least : most) = middle;
    }
    one.factor = std::exp((least + most) / 2);
  }

  const Workload& work_;
  const Machine& machine_;
  const Stack& stack_;
  const metrics::RunFigures& measured_;
};

}  // namespace

const char* name_of(Rate rate) {
  if (rate == Rate::products) return "the rate of products and attention";
  return rate == Rate::memory ? "the bandwidth of memory" : "the bandwidth of links";
}

std::optional<Rate> rate_of(const std::string& part) {
  if (part.starts_with(metrics::kWaitingIn)) return Rate::links;
  if (part == "forward" || part == "backward") return Rate::products;
  if (part == "optimizer") return Rate::memory;
  return std::nullopt;
}

Refinement refine(const Workload& work, const Machine& machine, const Stack& stack,
                  const metrics::RunFigures& measured) {
  return Fit(work, machine, stack, measured).best();
}

Machine corrected(const Machine& machine, const std::vector<Correction>& corrections) {
  Machine out = machine;
  if (machine.host) {
    Host node = machine.host->node;
    for (const auto& [rate, factor] : corrections) scale(node, rate, factor);
    return machine_of(node, machine.nvlink_domain, machine.name);
  }
  for (const auto& [rate, factor] : corrections) scale(out, rate, factor);
  return out;
}

}  // namespace tessera::planner
