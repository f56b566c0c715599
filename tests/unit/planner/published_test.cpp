// SPDX-License-Identifier: Apache-2.0
// Predictions beside published runs of other programs. Where a bound fails after a change of the
// model, fit the constants again, and write the new errors into share/doc/tessera/planner.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <span>

#include "tessera/planner/price.hpp"
#include "unit/planner/published_rows.hpp"

namespace tessera::planner {
namespace {

/// Relative errors, sorted.
using Errors = std::vector<double>;

double quantile(const Errors& errors, double which) {
  const double at = which * static_cast<double>(errors.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, errors.size() - 1);
  return errors[below] + (at - static_cast<double>(below)) * (errors[above] - errors[below]);
}

struct Bound {
  const char* stack;
  std::size_t rows;
  double median, ninth;  ///< relative errors of tokens/s: median and 90th percentile
};

/// Constants of the first group are fitted to these rows; none is fitted to those of the second.
constexpr Bound kBounds[] = {
    {"fms-fsdp", 3, 0.03, 0.06},
    {"llm-foundry", 29, 0.03, 0.10},
    {"maxtext", 10, 0.03, 0.05},
    {"megatron-bridge", 88, 0.06, 0.12},
    {"nemo", 69, 0.04, 0.10},
    {"tessera", 14, 0.06, 0.11},
    {"torchtitan-compile", 8, 0.04, 0.10},
    {"torchtitan-eager", 2, 0.04, 0.04},

    {"megatron-lm", 5, 0.09, 0.15},
    {"nemo-24.07", 5, 0.03, 0.13},
    {"nemo-automodel", 3, 0.06, 0.15},
};

/// Further rows, which came after the fits.
constexpr Bound kFurther[] = {
    {"fms-fsdp", 4, 0.03, 0.06},
    {"llm-foundry", 187, 0.03, 0.09},
    {"megatron-bridge", 35, 0.06, 0.12},
    {"nemo", 26, 0.06, 0.37},
    {"torchtitan-2025-06", 10, 0.06, 0.10},
    {"torchtitan-compile", 8, 0.14, 0.27},
};

void expect_speeds(bool further, std::span<const Bound> bounds) {
  std::map<std::string, Errors> errors;
  for (const PublishedRow& row : published_rows()) {
    if (row.further != further) continue;
    const Price it = price(row.work, row.machine_used(), load_stack(row.stack));
    errors[row.stack].push_back(
        std::abs(it.tokens_per_second_per_gpu / row.tokens_per_second_per_gpu - 1));
  }
  ASSERT_EQ(errors.size(), bounds.size());
  for (const Bound& bound : bounds) {
    Errors& each = errors[bound.stack];
    std::ranges::sort(each);
    ASSERT_EQ(each.size(), bound.rows) << bound.stack;
    EXPECT_LE(quantile(each, 0.5), bound.median) << bound.stack;
    EXPECT_LE(quantile(each, 0.9), bound.ninth) << bound.stack;
    std::printf("%-20s %3zu rows, median %4.1f %%, p90 %4.1f %%, most %4.1f %%\n", bound.stack,
                each.size(), 100 * quantile(each, 0.5), 100 * quantile(each, 0.9),
                100 * each.back());
  }
}

TEST(Published, SpeedsAreWithinTheErrorsOfTheDocuments) { expect_speeds(false, kBounds); }

TEST(Published, SpeedsOfFurtherRowsAreWithinTheErrorsOfTheDocuments) {
  expect_speeds(true, kFurther);
}

void expect_memory(bool further, std::size_t rows, double median, double most) {
  Errors errors;
  for (const PublishedRow& row : published_rows()) {
    if (row.memory_bytes == 0 || row.further != further) continue;
    const double bytes = price(row.work, row.machine_used(), load_stack(row.stack)).memory.total();
    errors.push_back(std::abs(bytes / row.memory_bytes - 1));
    std::printf("%-20s %-12s %5.1f GiB, published %5.1f\n", row.stack.c_str(), row.model.c_str(),
                bytes / 0x1p30, row.memory_bytes / 0x1p30);
  }
  std::ranges::sort(errors);
  ASSERT_EQ(errors.size(), rows);
  EXPECT_LE(quantile(errors, 0.5), median);
  EXPECT_LE(errors.back(), most);
}

TEST(Published, MemoryIsWithinTheErrorsOfTheDocuments) {
  expect_memory(false, 11, 0.02, 0.20);
  expect_memory(true, 10, 0.05, 0.20);
}

}  // namespace
}  // namespace tessera::planner
