// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "tessera/base/error.hpp"
#include "tessera/sweep/sweep.hpp"

namespace tessera::sweep {
namespace {

constexpr std::size_t kNumbersShown = 10, kRefusalsShown = 20;

struct Refusal {
  std::string text;
  std::vector<const Point*> points;
};

std::string indented(std::string text, std::string_view indent) {
  for (std::size_t at = 0; (at = text.find('\n', at)) != text.npos; at += indent.size() + 1)
    text.insert(at + 1, indent);
  return fmt::format("\n{}{}", indent, text);
}

std::string told(const Refusal& refusal, std::size_t all) {
  std::vector<int> numbers;
  for (const Point* point : refusal.points)
    if (numbers.size() < kNumbersShown) numbers.push_back(point->number);
  const std::size_t count = refusal.points.size();
  const std::string who =
      count == all ? "all points"
      : count == 1
          ? fmt::format("point {}", numbers.front())
          : fmt::format(
                "points {}{}", fmt::join(numbers, ", "),
                count > numbers.size() ? fmt::format(" and {} more", count - numbers.size()) : "");
  return fmt::format("\n  {}, first {}:{}", who, describe(refusal.points.front()->settings),
                     indented(refusal.text, "    "));
}

}  // namespace

void check_points(const Sweep& sweep, const std::vector<Point>& points, const JobCheck& check) {
  std::vector<Refusal> refusals;
  std::size_t refused = 0;
  for (const Point& point : points) {
    std::string wrong = check(train_arguments(sweep, point));
    if (wrong.empty()) continue;
    ++refused;
    const auto before = std::ranges::find(refusals, wrong, &Refusal::text);
    if (before != refusals.end())
      before->points.push_back(&point);
    else
      refusals.push_back({std::move(wrong), {&point}});
  }
  if (refusals.empty()) return;
  std::string text =
      fmt::format("{} of {} points of {} are refused", refused, points.size(), sweep.file);
  for (std::size_t i = 0; i < std::min(refusals.size(), kRefusalsShown); ++i)
    text += told(refusals[i], points.size());
  if (refusals.size() > kRefusalsShown)
    text += fmt::format("\n  ... and {} more problems", refusals.size() - kRefusalsShown);
  throw Error(ExitCode::usage, text);
}

void check_common_files(const Sweep& sweep, const std::vector<Point>& points,
                        const FileCheck& check) {
  std::vector<FileProblem> common, first;
  for (const Point& point : points) {
    std::vector<FileProblem> found = check(train_arguments(sweep, point));
    if (found.empty()) return;
    std::erase_if(common, [&](const FileProblem& problem) {
      return std::ranges::find(found, problem.text, &FileProblem::text) == found.end();
    });
    if (first.empty()) common = first = std::move(found);
  }
  if (first.empty()) return;
  std::string text = fmt::format("no point of {} can start", sweep.file);
  if (common.empty()) text += fmt::format(", such as {}", describe(points.front().settings));
  const std::vector<FileProblem>& told = common.empty() ? first : common;
  for (const FileProblem& problem : told) text += indented(problem.text, "  ");
  throw Error(told.front().code, text + "\n(--no-files starts them without a look at files)");
}

}  // namespace tessera::sweep
