// SPDX-License-Identifier: Apache-2.0
// The loops of the Kokkos kernels. Includes Kokkos, which costs 2 s a file: only kokkos/kernels.cpp
// includes it.
#pragma once

#ifndef TESSERA_ISA_NAMESPACE
#define TESSERA_ISA_NAMESPACE kokkos
#endif

#include <Kokkos_Core.hpp>
#include <cstdint>
#include <limits>

#include "elements.hpp"
#include "row_types.hpp"
#include "stored.hpp"

namespace tessera::kernels::kokkos {

/// Where the kernels run. The host's threads each call them on rows of their own
/// (host/parallel_for.hpp).
using Space = Kokkos::Serial;
using Team = Kokkos::TeamPolicy<Space>::member_type;
using Flat = Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>;

/// The calling thread's instance of Space: from Kokkos 4 on, launches on one instance wait for each
/// other. It is never freed, because a thread may end after Kokkos.
inline const Space& space() {
#if KOKKOS_VERSION >= 40000
  thread_local const Space& own = *new Space(Kokkos::Experimental::partition_space(Space(), 1)[0]);
#else
  static const Space own;
#endif
  return own;
}

/// body(i) for each i of [0, count).
template <class Body>
void for_each(std::int64_t count, const Body& body) {
  Kokkos::parallel_for(Flat(space(), 0, count), body);
}

/// body(team, row) for each of `rows` < 2^31 rows.
template <class Body>
void for_rows(std::int64_t rows, const Body& body) {
  const Kokkos::TeamPolicy<Space> teams(space(), static_cast<int>(rows), Kokkos::AUTO);
  Kokkos::parallel_for(
      teams, KOKKOS_LAMBDA(const Team& team) { body(team, std::int64_t{team.league_rank()}); });
}

/// body(i) for each column i of [begin, end), in the threads of a team.
template <class Body>
TESSERA_HD void for_columns(const Team& team, std::int64_t begin, std::int64_t end,
                            const Body& body) {
  Kokkos::parallel_for(Kokkos::TeamVectorRange(team, begin, end), body);
}

/// Terms that are added by halves, before the sums of such runs are added in double.
inline constexpr int run_size = 16;

/// Sum of term(i) in type C over the run that begins at `begin`, at most to `end`.
template <class C, class Term>
TESSERA_HD double sum_of_run(std::int64_t begin, std::int64_t end, const Term& term) {
  C terms[run_size];
  if (begin + run_size <= end)
    for (int k = 0; k < run_size; ++k) terms[k] = term(begin + k);
  else
    for (int k = 0; k < run_size; ++k) terms[k] = begin + k < end ? term(begin + k) : C(0);
  for (int half = run_size / 2; half > 0; half /= 2)
    for (int k = 0; k < half; ++k) terms[k] += terms[k + half];
  return static_cast<double>(terms[0]);
}

TESSERA_HD std::int64_t runs_of(std::int64_t count) { return (count + run_size - 1) / run_size; }

/// Sum of term(i) in type C over the columns [0, width), in the threads of a team.
template <class C, class Term>
TESSERA_HD double sum_of_columns(const Team& team, std::int64_t width, const Term& term) {
  double total = 0;
  Kokkos::parallel_reduce(
      Kokkos::TeamVectorRange(team, runs_of(width)),
      [&](std::int64_t run, double& sum) { sum += sum_of_run<C>(run * run_size, width, term); },
      total);
  return total;
}

/// Sum of term(i) in double over [0, count).
template <class Term>
double sum_of(std::int64_t count, const Term& term) {
  double total = 0;
  Kokkos::parallel_reduce(
      Flat(space(), 0, runs_of(count)),
      KOKKOS_LAMBDA(std::int64_t run, double& sum) {
        sum += sum_of_run<double>(run * run_size, count, term);
      },
      total);
  return total;
}

/// Largest of the integers term(i) over [0, count).
template <class Term>
std::int64_t largest_of(std::int64_t count, const Term& term) {
  std::int64_t largest = 0;
  Kokkos::parallel_reduce(
      Flat(space(), 0, count),
      KOKKOS_LAMBDA(std::int64_t i, std::int64_t & best) {
        const std::int64_t value = term(i);
        best = value > best ? value : best;
      },
      Kokkos::Max<std::int64_t>(largest));
  return largest;
}

}  // namespace tessera::kernels::kokkos
