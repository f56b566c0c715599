// SPDX-License-Identifier: Apache-2.0
// Rows of tokens in the order of their experts, and back; both differentiable, with gradients in a
// fixed order.
#pragma once

#include "tessera/kernels/tensor.hpp"

#include "tessera/kernels/choices.hpp"
#include "tessera/model/token_exchange.hpp"

namespace tessera::model {

/// tokens [T, dim] -> rows [R, dim] of the tokens `of` [R]. `places` [T, K]: where a token's rows
/// are.
at::Tensor rows_of_tokens(const at::Tensor& tokens, const at::Tensor& of, const at::Tensor& places,
                          kernels::Paired paired = kernels::Paired::choices);

/// `sorted` by expert, `sent` rows for each expert. With free rows, which are of any choice and at
/// no place, the rows for each rank begin at a multiple of a fixed number. Where it is too small,
/// some get the places of others.
SentRows spaced(SentRows sorted, const at::Tensor& sent, const TokenExchange& exchange);

/// TokenExchange::counts() of `sent`, of which no more count than each rank sends, if it is a fixed
/// number of `rows` for each.
at::Tensor received_rows(const at::Tensor& sent, std::int64_t rows, const TokenExchange& exchange);

/// rows[order]; gradients come from gradient[back], which undoes `order` for rows that count.
at::Tensor reordered(const at::Tensor& rows, const at::Tensor& order, const at::Tensor& back);

/// received [ranks, experts]: rows of each rank for each expert, lying rank by rank -> the expert
/// of each of `rows`, which these are. `free_rows`: the rest of each rank's rows are free, and have
/// the number after the last one.
at::Tensor experts_of_rows(const at::Tensor& received, const at::Tensor& rows, bool free_rows);

}  // namespace tessera::model
