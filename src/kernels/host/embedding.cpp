// SPDX-License-Identifier: Apache-2.0
#include "embedding.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "host/run.hpp"

namespace tessera::kernels::host {
namespace {

/// Where tokens of each row that `of` has begin in `tokens`, which is sorted.
std::vector<std::int64_t> run_begins(const std::int64_t* tokens, std::int64_t count,
                                     VocabularyRows of) {
  std::vector<std::int64_t> begins;
  for (std::int64_t i = 0; i < count; ++i) {
    const bool begins_run = i == 0 || tokens[i] != tokens[i - 1];
    if (begins_run && tokens[i] >= of.row_begin && tokens[i] < of.row_begin + of.rows)
      begins.push_back(i);
  }
  return begins;
}

}  // namespace

at::Tensor embedding(const at::Tensor& table, const at::Tensor& tokens, std::int64_t row_begin) {
  const std::int64_t count = tokens.numel(), vocab = table.size(0), width = table.size(1);
  const at::Tensor made = at::empty({count, width}, table.options());
  const auto* token = const_pointer<std::int64_t>(tokens);
  with_type(table.scalar_type(), [&]<class T>(T) {
    const auto* from = const_pointer<T>(table);
    auto* to = pointer<T>(made);
    for_rows(count, width, [&](std::int64_t first, std::int64_t rows) {
      for (std::int64_t t = first; t < first + rows; ++t) {
        const std::int64_t row = token[t] - row_begin;
        if (row >= 0 && row < vocab)
          std::copy_n(from + row * width, width, to + t * width);
        else
          std::fill_n(to + t * width, width, T{});
      }
    });
  });
  return made;
}

at::Tensor embedding_backward(const at::Tensor& gradient, const SortedTokens& sorted,
                              VocabularyRows of) {
  constexpr std::int64_t most_columns = 256, grain_columns = 64;
  const std::int64_t count = gradient.size(0), width = gradient.size(1);
  const at::Tensor made = at::zeros({of.rows, width}, gradient.options());
  const auto* token = const_pointer<std::int64_t>(sorted.tokens);
  const auto* place = const_pointer<std::int64_t>(sorted.places);
  const std::vector<std::int64_t> begins = run_begins(token, count, of);
  with_type(gradient.scalar_type(), [&]<class T>(T t) {
    const auto* from = const_pointer<T>(gradient);
    auto* to = pointer<T>(made);
    const auto sum_columns = [&](std::int64_t column, std::int64_t columns) {
      std::array<Compute<T>, most_columns> sum;
      for (const std::int64_t begin : begins) {
        std::fill_n(sum.begin(), columns, 0);
        for (std::int64_t i = begin; i < count && token[i] == token[begin]; ++i)
          functions_of(t).accumulate(sum.data(), from + place[i] * width + column, columns);
        functions_of(t).narrow(to + (token[begin] - of.row_begin) * width + column, sum.data(),
                               columns);
      }
    };
    // Threads share out columns: some rows have many tokens.
    for_rows((width + grain_columns - 1) / grain_columns, grain_columns * count,
             [&](std::int64_t first, std::int64_t parts) {
               const std::int64_t end = std::min(width, (first + parts) * grain_columns);
               for (std::int64_t c = first * grain_columns; c < end; c += most_columns)
                 sum_columns(c, std::min(most_columns, end - c));
             });
  });
  return made;
}

}  // namespace tessera::kernels::host
