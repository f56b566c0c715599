// SPDX-License-Identifier: Apache-2.0
// AdamW on the device: one sweep, threads over packs of 16 bytes of the widest operand.
#include <algorithm>

#include "cuda/packs.cuh"

namespace tessera::kernels::device {
namespace {

template <class P, class G, class M>
struct Sweep {
  P* param;
  const G* grad;
  M *exp_avg, *exp_avg_sq;
  Bf16* compute_copy;
  AdamWConstants<Compute<P>> constants;
  RoundingNoise noise;
};

/// Numbers of neighbours in the whole parameter, one after the other.
class Numbers {
 public:
  __device__ Numbers(const RoundingNoise& noise, std::int64_t i) : noise_(noise) {
    const auto [run, column] = i < noise.run ? Divided{0, i} : divided(i, noise.run);
    column_ = column;
    number_ = noise.first + run * noise.stride + column;
  }
  __device__ std::int64_t next() {
    const std::int64_t number = number_++;
    if (++column_ == noise_.run) {
      column_ = 0;
      number_ += noise_.stride - noise_.run;
    }
    return number;
  }

 private:
  const RoundingNoise& noise_;
  std::int64_t column_, number_;
};

template <class P, int size>
__device__ void store_copy(Bf16*, std::int64_t, const Pack<P, size>&) {}
template <int size>
__device__ void store_copy(Bf16* copy, std::int64_t i, const Pack<float, size>& param) {
  if (copy == nullptr) return;
  Pack<Bf16, size> rounded;
  for (int k = 0; k < size; ++k) rounded.items[k] = narrow<Bf16>(param.items[k]);
  store<size>(copy + i, rounded);
}

template <int size, class P, class G, class M>
__device__ void update(const Sweep<P, G, M>& s, std::int64_t i) {
  auto p = load<size>(s.param + i);
  auto m = load<size>(s.exp_avg + i), v = load<size>(s.exp_avg_sq + i);
  const auto g = load<size>(s.grad + i);
  Numbers numbers(s.noise, s.noise.on ? i : 0);
  for (int k = 0; k < size; ++k) {
    const AdamWState<Compute<P>> old{wide(p.items[k]), wide(m.items[k]), wide(v.items[k])};
    const auto next = adamw_element(old, Compute<P>(wide(g.items[k])), s.constants);
    store_state(next, s.noise, numbers.next(), p.items[k], m.items[k], v.items[k]);
  }
  store<size>(s.param + i, p);
  store<size>(s.exp_avg + i, m);
  store<size>(s.exp_avg_sq + i, v);
  store_copy(s.compute_copy, i, p);
}

}  // namespace

/// Whole packs first, then the tail element by element: same arithmetic, same bits.
template <class P, class G, class M>
void adamw(P* param, const G* grad, M* exp_avg, M* exp_avg_sq, Bf16* compute_copy,
           std::int64_t count, const AdamWArguments& arguments, cudaStream_t stream) {
  constexpr int size = std::min({pack_size<P>, pack_size<G>, pack_size<M>});
  const Sweep<P, G, M> sweep{param,          grad,         exp_avg,
                             exp_avg_sq,     compute_copy, adamw_constants<Compute<P>>(arguments),
                             arguments.noise};
  const bool fits = is_aligned(param, size) && is_aligned(grad, size) &&
                    is_aligned(exp_avg, size) && is_aligned(exp_avg_sq, size) &&
                    is_aligned(compute_copy, size);
  const std::int64_t packs = fits ? count / size : 0, tasks = packs + (count - packs * size);
  launch({"adamw",
          (tasks + threads_per_block - 1) / threads_per_block,
          0,
          stream,
          {writes(param, count), reads(grad, count), writes(exp_avg, count),
           writes(exp_avg_sq, count), writes(compute_copy, count)}},
         [=] __device__(std::int64_t block, unsigned char*) {
           const std::int64_t i = block * threads_per_block + threadIdx.x;
           if (i < packs)
             update<size>(sweep, i * size);
           else if (i < tasks)
             update<1>(sweep, packs * size + (i - packs));
         });
}

#define TESSERA_INSTANTIATE(P, G, M)                                                    \
  template void adamw(P*, const G*, M*, M*, Bf16*, std::int64_t, const AdamWArguments&, \
                      cudaStream_t);
TESSERA_INSTANTIATE(double, double, double)
TESSERA_INSTANTIATE(float, float, float)
TESSERA_INSTANTIATE(float, Bf16, float)
TESSERA_INSTANTIATE(float, float, Bf16)
TESSERA_INSTANTIATE(float, Bf16, Bf16)
TESSERA_INSTANTIATE(Bf16, float, float)
TESSERA_INSTANTIATE(Bf16, Bf16, float)
TESSERA_INSTANTIATE(Bf16, float, Bf16)
TESSERA_INSTANTIATE(Bf16, Bf16, Bf16)

}  // namespace tessera::kernels::device
