// SPDX-License-Identifier: Apache-2.0
#include "plan_traffic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tessera/plan/step_traffic.hpp"

namespace tessera::app {
namespace {

struct RankTraffic {
  mesh::Rank rank;
  plan::StepTraffic step;
  std::int64_t bytes = 0;
};

std::vector<RankTraffic> by_pipeline_rank(const plan::JobPlan& plan) {
  std::vector<RankTraffic> all;
  for (const mesh::Rank rank : pipeline_ranks(plan.layout)) {
    RankTraffic traffic{rank, plan::step_traffic(plan, rank)};
    for (const plan::TrafficRow& row : traffic.step.rows) traffic.bytes += row.bytes;
    all.push_back(std::move(traffic));
  }
  return all;
}

}  // namespace

std::vector<mesh::Rank> pipeline_ranks(const mesh::Layout& layout) {
  return layout.group_of(mesh::Rank(0), {mesh::Axis::pp});
}

std::string traffic_table(const plan::JobPlan& plan) {
  const std::vector<RankTraffic> all = by_pipeline_rank(plan);
  const RankTraffic& most = *std::ranges::max_element(all, {}, &RankTraffic::bytes);
  if (!most.step.unknown.empty())
    return fmt::format("traffic     not predicted: {}\n", most.step.unknown);
  std::string text = fmt::format("traffic     of rank {} in a step\n", most.rank);
  text += fmt::format("            {:<26}{:<16}{:>8}{:>12}\n", "axis", "call", "calls", "MiB");
  for (const plan::TrafficRow& row : most.step.rows)
    text +=
        fmt::format("            {:<26}{:<16}{:>8}{:>12.3f}\n", row.axis, comm::name_of(row.call),
                    row.calls, static_cast<double>(row.bytes) / (1024 * 1024));
  return text;
}

nlohmann::json traffic_json(const plan::JobPlan& plan) {
  nlohmann::json all = nlohmann::json::array();
  for (const RankTraffic& traffic : by_pipeline_rank(plan)) {
    if (!traffic.step.unknown.empty()) return "not predicted: " + traffic.step.unknown;
    nlohmann::json rows = nlohmann::json::array();
    for (const plan::TrafficRow& row : traffic.step.rows)
      rows.push_back({{"axis", row.axis},
                      {"call", comm::name_of(row.call)},
                      {"calls", row.calls},
                      {"bytes", row.bytes}});
    all.push_back({{"rank", traffic.rank.value()}, {"rows", std::move(rows)}});
  }
  return all;
}

}  // namespace tessera::app
