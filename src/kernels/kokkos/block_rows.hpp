// SPDX-License-Identifier: Apache-2.0
// RMSNorm and the rotary embedding: team policies, one team for each row.
#pragma once

#include "kokkos/loops.hpp"

namespace tessera::kernels::kokkos {

/// The sums that are to be normed, one row after the other.
template <class T>
const T* summed_rows(const NormInput<T>& in, Extent extent) {
  if (in.residual == nullptr) return in.x;
  for_rows(
      extent.rows, KOKKOS_LAMBDA(const Team& team, std::int64_t row) {
        const std::int64_t begin = row * extent.width;
        for_columns(team, begin, begin + extent.width, [=](std::int64_t i) {
          in.sum[i] = narrow<T>(wide(in.x[i]) + wide(in.residual[i]));
        });
      });
  return in.sum;
}

template <class T>
void rms_norm(const NormInput<T>& input, const T* weight, T* y, Compute<T>* rstd, Extent extent,
              double eps) {
  using C = Compute<T>;
  const T* const x = summed_rows(input, extent);
  for_rows(
      extent.rows, KOKKOS_LAMBDA(const Team& team, std::int64_t row) {
        const T* const in = x + row * extent.width;
        T* const out = y + row * extent.width;
        const double squares = sum_of_columns<C>(team, extent.width, [=](std::int64_t i) {
          const C v = wide(in[i]);
          return v * v;
        });
        const C r = 1 / square_root(C(squares) / C(extent.width) + C(eps));
        Kokkos::single(Kokkos::PerTeam(team), [=] { rstd[row] = r; });
        for_columns(team, 0, extent.width,
                    [=](std::int64_t i) { out[i] = narrow<T>(wide(in[i]) * r * wide(weight[i])); });
      });
}

/// dx of each row.
template <class T>
void rms_norm_inputs(const NormGradient<T>& gradient, const T* x, const T* weight,
                     const Compute<T>* rstd, T* dx, Extent extent) {
  using C = Compute<T>;
  for_rows(
      extent.rows, KOKKOS_LAMBDA(const Team& team, std::int64_t row) {
        const T *const g = gradient.y + row * extent.width, *const in = x + row * extent.width;
        T* const out = dx + row * extent.width;
        const C r = rstd[row];
        const double dot = sum_of_columns<C>(team, extent.width, [=](std::int64_t i) {
          return wide(g[i]) * wide(weight[i]) * wide(in[i]);
        });
        const C projection = r * r * r * C(dot) / C(extent.width);
        for_columns(team, 0, extent.width, [=](std::int64_t i) {
          const C of_x =
              rms_norm_gradient(wide(g[i]) * wide(weight[i]), wide(in[i]), r, projection);
          const T* const more = gradient.sum;
          out[i] = narrow<T>(more == nullptr ? of_x : of_x + wide(more[row * extent.width + i]));
        });
      });
}

/// Columns of a weight gradient that a team owns, so that they add up in the order of the rows.
inline constexpr std::int64_t columns_of_team = 64;

template <class T>
void rms_norm_backward(const NormGradient<T>& gradient, const T* x, const T* weight,
                       const Compute<T>* rstd, T* dx, Compute<T>* dweight, Extent extent) {
  using C = Compute<T>;
  rms_norm_inputs(gradient, x, weight, rstd, dx, extent);
  const std::int64_t teams = (extent.width + columns_of_team - 1) / columns_of_team;
  for_rows(
      teams, KOKKOS_LAMBDA(const Team& team, std::int64_t part) {
        const std::int64_t begin = part * columns_of_team, left = extent.width - begin;
        const std::int64_t end = begin + (left < columns_of_team ? left : columns_of_team);
        for (std::int64_t row = 0; row < extent.rows; ++row) {
          const T *const g = gradient.y + row * extent.width, *const in = x + row * extent.width;
          const C r = rstd[row];
          for_columns(team, begin, end, [=](std::int64_t i) {
            dweight[i] = fma(wide(g[i]), wide(in[i]) * r, dweight[i]);
          });
        }
      });
}

template <class T>
void rope(const T* x, const Compute<T>* cos, const Compute<T>* sin, T* y, RopeExtent extent,
          Compute<T> sign) {
  using C = Compute<T>;
  const std::int64_t pairs = extent.head_dim / 2;
  for_rows(
      extent.positions, KOKKOS_LAMBDA(const Team& team, std::int64_t position) {
        const C *const cosines = cos + position * pairs, *const sines = sin + position * pairs;
        Kokkos::parallel_for(Kokkos::TeamThreadRange(team, extent.heads), [=](std::int64_t head) {
          const T* const in = x + position * extent.stride + head * extent.head_dim;
          T* const out = y + position * extent.out_stride + head * extent.head_dim;
          Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, pairs), [=](std::int64_t i) {
            const C a = wide(in[2 * i]), b = wide(in[2 * i + 1]), s = sign * sines[i];
            out[2 * i] = narrow<T>(fma(a, cosines[i], b * -s));
            out[2 * i + 1] = narrow<T>(fma(b, cosines[i], a * s));
          });
        });
      });
}

}  // namespace tessera::kernels::kokkos
