// SPDX-License-Identifier: Apache-2.0
// The kernels in Kokkos beside the SSE files, on the same rows. One element's arithmetic is the
// same code, so kernels without sums over a row give the same bits. Sums over a row are added in
// another order, partly in double.
#include "kokkos/kernels.hpp"

#include <cmath>
#include <cstring>
#include <thread>

#include "tessera/base/error.hpp"
#include "tessera/kernels/host_kernels.hpp"
#include "twin.hpp"

namespace tessera::kernels::test {
namespace {

constexpr std::int64_t rows = 5, width = 77;
const Extent extent{rows, width};

template <class T>
const RowFunctions<T>& of(const HostFunctions& table) {
  if constexpr (std::is_same_v<T, double>) return table.f64;
  if constexpr (std::is_same_v<T, float>) return table.f32;
  if constexpr (std::is_same_v<T, Bf16>) return table.bf16;
}

/// `count` values around 0, as the type stores them.
template <class T>
std::vector<T> some(std::int64_t count, double scale = 1) {
  const auto dtype = std::is_same_v<T, double>  ? at::kDouble
                     : std::is_same_v<T, float> ? at::kFloat
                                                : at::kBFloat16;
  const at::Tensor values = (at::randn({count}, at::kDouble) * scale).to(dtype);
  std::vector<T> result(static_cast<std::size_t>(count));
  std::memcpy(result.data(), values.const_data_ptr(), result.size() * sizeof(T));
  return result;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

/// Largest difference of two vectors of float or double, relative to 1.
template <class C>
double difference(const std::vector<C>& a, const std::vector<C>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::fabs(double(a[i]) - double(b[i])));
  return largest;
}

template <class T>
struct Kokkos : testing::Test {
  using C = Compute<T>;
  const RowFunctions<T>& kokkos = of<T>(kokkos::started_functions());
  static constexpr double limit = std::is_same_v<T, double> ? 1e-13 : 4e-6;
};
using Types = testing::Types<double, float, Bf16>;
TYPED_TEST_SUITE(Kokkos, Types);

#if defined(__x86_64__)

template <class T>
const RowFunctions<T>& sse_of() {
  return of<T>(sse::host_functions);
}

TYPED_TEST(Kokkos, EachElementKernelHasTheBitsOfSse) {
  using T = TypeParam;
  std::vector<std::vector<T>> inputs;
  for (int k = 0; k < most_element_operands; ++k)
    inputs.push_back(some<T>(rows * width, k == 0 ? 1 : 4));
  const auto of_table = [&](const RowFunctions<T>& table, auto kernel) {
    std::vector<T> out(most_element_operands * rows * width);
    ElementRows<T> operands{};
    operands.numbers = {.alpha = 1.7, .limit = 2};
    for (int k = 0; k < most_element_operands; ++k) {
      operands.inputs[k] = {inputs[k].data(), width};
      operands.outputs[k] = {out.data() + k * rows * width, width};
    }
    (table.*kernel)(operands, extent);
    return out;
  };
#define TESSERA_COMPARE(name, Type)                                     \
  EXPECT_TRUE(same_bits(of_table(this->kokkos, &RowFunctions<T>::name), \
                        of_table(sse_of<T>(), &RowFunctions<T>::name))) \
      << #name;
  TESSERA_ELEMENT_KERNELS(TESSERA_COMPARE)
#undef TESSERA_COMPARE
}

TYPED_TEST(Kokkos, RopeHasTheBitsOfSse) {
  using T = TypeParam;
  using C = Compute<T>;
  const std::int64_t positions = 6, heads = 3, head_dim = 22;
  const auto x = some<T>(positions * heads * head_dim);
  const auto cos = some<C>(positions * head_dim / 2), sin = some<C>(positions * head_dim / 2);
  for (const C sign : {C(1), C(-1)}) {
    const auto turned = [&](const RowFunctions<T>& table) {
      std::vector<T> y(x.size() + 3 * positions);
      table.rope(x.data(), cos.data(), sin.data(), y.data(),
                 {positions, heads, head_dim, heads * head_dim, heads * head_dim + 3}, sign);
      return y;
    };
    EXPECT_TRUE(same_bits(turned(this->kokkos), turned(sse_of<T>())));
  }
}

TYPED_TEST(Kokkos, FlatKernelsHaveTheBitsOfSse) {
  using T = TypeParam;
  using C = Compute<T>;
  const auto stored = some<T>(1000);
  const auto wide = some<C>(1000);
  const auto flat = [&](const RowFunctions<T>& table) {
    std::vector<C> widened(1000);
    std::vector<T> narrowed(1000);
    table.widen(widened.data(), stored.data(), 1000);
    table.accumulate(widened.data() + 3, stored.data(), 990);
    table.narrow(narrowed.data(), wide.data(), 1000);
    return std::pair(widened, narrowed);
  };
  const auto [widened, narrowed] = flat(this->kokkos);
  const auto [sse_widened, sse_narrowed] = flat(sse_of<T>());
  EXPECT_TRUE(same_bits(widened, sse_widened));
  EXPECT_TRUE(same_bits(narrowed, sse_narrowed));
}

TYPED_TEST(Kokkos, ExactSumsAreTheSameNumbers) {
  using T = TypeParam;
  for (const double scale : {1.0, 1e-18, 1e30}) {
    const auto values = some<T>(1000, scale);
    double ours[3], theirs[3];
    const bool fits = this->kokkos.exact_squares(values.data(), 1000, ours);
    ASSERT_EQ(fits, sse_of<T>().exact_squares(values.data(), 1000, theirs));
    if (fits) {
      EXPECT_EQ(std::memcmp(ours, theirs, sizeof ours), 0) << scale;
    }
    ASSERT_EQ(this->kokkos.exact_values(values.data(), 1000, ours),
              sse_of<T>().exact_values(values.data(), 1000, theirs));
  }
}

TYPED_TEST(Kokkos, SoftmaxHasTheBitsOfSseButForItsSum) {
  using T = TypeParam;
  using C = Compute<T>;
  const auto logits = some<T>(rows * width, 4);
  const std::vector<std::int64_t> labels{0, ignored_row, width - 1, 1000, 3};
  const auto softmax = [&](const RowFunctions<T>& table, std::vector<C> sum) {
    std::vector<C> max(rows), target(rows), own(rows);
    std::vector<T> gradient = logits;
    table.row_max({logits.data(), width}, max.data(), extent);
    table.sum_exp({logits.data(), width}, max.data(), {labels.data(), 0}, own.data(), target.data(),
                  extent);
    if (sum.empty()) sum = own;
    table.softmax_gradient({gradient.data(), width}, max.data(), sum.data(), {labels.data(), 0},
                           C(0.25), extent);
    return std::tuple(max, target, gradient, own);
  };
  const auto [max, target, gradient, sum] = softmax(this->kokkos, {});
  const auto [sse_max, sse_target, sse_gradient, sse_sum] = softmax(sse_of<T>(), sum);
  EXPECT_TRUE(same_bits(max, sse_max));
  EXPECT_TRUE(same_bits(target, sse_target));
  EXPECT_TRUE(same_bits(gradient, sse_gradient));
  EXPECT_LE(difference(sum, sse_sum), this->limit * 10);
}

TYPED_TEST(Kokkos, RmsNormDiffersBySumsOfRows) {
  using T = TypeParam;
  using C = Compute<T>;
  const auto x = some<T>(rows * width), dy = some<T>(rows * width), weight = some<T>(width);
  for (const T* more : {static_cast<const T*>(nullptr), dy.data()}) {
    const auto normed = [&](const RowFunctions<T>& table) {
      std::vector<T> y(rows * width), sum(x);
      std::vector<C> rstd(rows);
      table.rms_norm({x.data(), more, sum.data()}, weight.data(), y.data(), rstd.data(), extent,
                     1e-5);
      return std::pair(sum, rstd);
    };
    const auto [sum, ours] = normed(this->kokkos);
    const auto [sse_sum, theirs] = normed(sse_of<T>());
    EXPECT_TRUE(same_bits(sum, sse_sum));
    EXPECT_LE(difference(ours, theirs), this->limit);
    const auto gradients = [&](const RowFunctions<T>& table) {
      std::vector<T> dx(rows * width);
      std::vector<C> dweight(width);
      table.rms_norm_backward({dy.data(), more}, sum.data(), weight.data(), ours.data(), dx.data(),
                              dweight.data(), extent);
      return dweight;
    };
    EXPECT_TRUE(same_bits(gradients(this->kokkos), gradients(sse_of<T>())));
  }
}

/// Of a sweep of AdamW, or of Adam.
AdamWArguments sweep_arguments(double coupled_decay) {
  return {.gradient_scale = 0.5,
          .coupled_decay = coupled_decay,
          .decay = coupled_decay > 0 ? 1 : 0.999,
          .beta1 = 0.9,
          .beta2 = 0.95,
          .root_correction2 = 0.3,
          .eps = 1e-8,
          .step = 1e-2};
}

TEST(KokkosAdamW, HasTheBitsOfSse) {
  const auto param = some<float>(333), moment = some<float>(333);
  const auto grad = some<Bf16>(333);
  const auto swept = [&](const HostFunctions& table, double coupled_decay) {
    auto p = param, m = moment, v = moment;
    for (float& value : v) value = std::fabs(value);
    std::vector<Bf16> copy(333);
    table.adamw_f32.bf16_gradient(p.data(), grad.data(), m.data(), v.data(), copy.data(), 333,
                                  sweep_arguments(coupled_decay));
    return std::tuple(p, m, v, copy);
  };
  for (const double coupled_decay : {0.0, 0.1}) {
    const auto [p, m, v, copy] = swept(kokkos::started_functions(), coupled_decay);
    const auto [sse_p, sse_m, sse_v, sse_copy] = swept(sse::host_functions, coupled_decay);
    EXPECT_TRUE(same_bits(p, sse_p));
    EXPECT_TRUE(same_bits(m, sse_m));
    EXPECT_TRUE(same_bits(v, sse_v));
    EXPECT_TRUE(same_bits(copy, sse_copy));
  }
}

TEST(KokkosAdamW, RoundsRandomlyAsSseDoes) {
  AdamWArguments arguments = sweep_arguments(0);
  arguments.noise = {.on = true, .low_key = 7, .high_key = 9, .first = (1LL << 33) - 100};
  const auto param = some<Bf16>(333), moment = some<Bf16>(333);
  const auto grad = some<float>(333);
  const auto swept = [&](const HostFunctions& table) {
    auto p = param, m = moment, v = moment;
    for (Bf16& value : v) value.bits &= 0x7fff;
    table.adamw_bf16.bf16_moments(p.data(), grad.data(), m.data(), v.data(), nullptr, 333,
                                  arguments);
    return std::tuple(p, m, v);
  };
  const auto [p, m, v] = swept(kokkos::started_functions());
  const auto [sse_p, sse_m, sse_v] = swept(sse::host_functions);
  EXPECT_TRUE(same_bits(p, sse_p));
  EXPECT_TRUE(same_bits(m, sse_m));
  EXPECT_TRUE(same_bits(v, sse_v));
}

#endif

TYPED_TEST(Kokkos, MaskedRowsAndNanKeepTheirMaximum) {
  using C = Compute<TypeParam>;
  const C inf = std::numeric_limits<C>::infinity(), nan = std::numeric_limits<C>::quiet_NaN();
  const std::vector<C> values{-inf, -inf, -inf, inf, nan, C(-2), C(-nan), C(1)};
  std::vector<TypeParam> logits(values.size());
  this->kokkos.narrow(logits.data(), values.data(), static_cast<std::int64_t>(values.size()));
  std::vector<C> max(4);
  this->kokkos.row_max({logits.data(), 2}, max.data(), {4, 2});
  EXPECT_EQ(max[0], -inf);
  EXPECT_EQ(max[1], inf);
  EXPECT_TRUE(std::isnan(max[2]));
  EXPECT_TRUE(std::isnan(max[3]));
}

TYPED_TEST(Kokkos, ThreadsLaunchAtOnce) {
  using T = TypeParam;
  using C = Compute<T>;
  const auto x = some<T>(rows * width), weight = some<T>(width);
  const auto norms = [&] {
    std::vector<T> y(rows * width);
    std::vector<C> rstd(rows);
    this->kokkos.rms_norm({x.data(), nullptr, nullptr}, weight.data(), y.data(), rstd.data(),
                          extent, 1e-5);
    rstd.push_back(static_cast<C>(this->kokkos.sum_of_squares(x.data(), rows * width)));
    return rstd;
  };
  const std::vector<C> want = norms();
  std::array<bool, 4> same{};
  std::vector<std::thread> threads;
  for (bool& result : same)
    threads.emplace_back([&] {
      result = true;
      for (int i = 0; i < 300; ++i) result = result && same_bits(norms(), want);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(same, testing::Each(true));
}

TEST(HostKernels, AreChosenByName) {
  choose_host_kernels("kokkos");
  EXPECT_EQ(host_kernels(), "kokkos " + kokkos_description());
  EXPECT_THAT(kokkos_description(), testing::MatchesRegex("[0-9.]+ \\(.*\\)"));
  EXPECT_THROW(choose_host_kernels("cuda"), Error);
  choose_host_kernels("auto");
}

}  // namespace
}  // namespace tessera::kernels::test
