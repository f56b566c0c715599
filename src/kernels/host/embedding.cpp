// SPDX-License-Identifier: Apache-2.0
#include "embedding.hpp"

#include <algorithm>
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
  const std::int64_t count = gradient.size(0), width = gradient.size(1);
  const at::Tensor made = at::zeros({of.rows, width}, gradient.options());
  const auto* token = const_pointer<std::int64_t>(sorted.tokens);
  const auto* place = const_pointer<std::int64_t>(sorted.places);
  const std::vector<std::int64_t> begins = run_begins(token, count, of);
  with_type(gradient.scalar_type(), [&]<class T>(T t) {
    const auto* from = const_pointer<T>(gradient);
    auto* to = pointer<T>(made);
    for_rows(std::ssize(begins), width, [&](std::int64_t first, std::int64_t runs) {
      std::vector<Compute<T>> sum(static_cast<std::size_t>(width));
      for (std::int64_t run = first; run < first + runs; ++run) {
        const std::int64_t begin = begins[static_cast<std::size_t>(run)];
        std::ranges::fill(sum, 0);
        for (std::int64_t i = begin; i < count && token[i] == token[begin]; ++i)
          functions_of(t).accumulate(sum.data(), from + place[i] * width, width);
        functions_of(t).narrow(to + (token[begin] - of.row_begin) * width, sum.data(), width);
      }
    });
  });
  return made;
}

}  // namespace tessera::kernels::host
