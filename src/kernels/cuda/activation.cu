// SPDX-License-Identifier: Apache-2.0
// Element kernels and the rotary embedding on the device: threads over packs of 16 bytes.
#include <algorithm>
#include <utility>

#include "cuda/packs.cuh"

namespace tessera::kernels::device {
namespace {

template <int size, class Kernel, class T>
void packs_of_elements(const char* name, const ElementRows<T>& rows, Extent extent,
                       cudaStream_t stream) {
  using C = Compute<T>;
  const auto body = [=] __device__(std::int64_t row, std::int64_t i) {
    Pack<T, size> inputs[Kernel::inputs], outputs[Kernel::outputs];
    for (int k = 0; k < Kernel::inputs; ++k)
      inputs[k] = load<size>(rows.inputs[k].data + row * rows.inputs[k].stride + i);
    for (int item = 0; item < size; ++item) {
      C in[Kernel::inputs], out[Kernel::outputs];
      for (int k = 0; k < Kernel::inputs; ++k) in[k] = wide(inputs[k].items[item]);
      Kernel::apply(in, out, rows.numbers);
      for (int k = 0; k < Kernel::outputs; ++k) outputs[k].items[item] = narrow<T>(out[k]);
    }
    for (int k = 0; k < Kernel::outputs; ++k)
      store<size>(rows.outputs[k].data + row * rows.outputs[k].stride + i, outputs[k]);
  };
  std::vector<Operand> operands;
  for (int k = 0; k < Kernel::inputs; ++k) operands.push_back(reads(rows.inputs[k], extent));
  for (int k = 0; k < Kernel::outputs; ++k) operands.push_back(writes(rows.outputs[k], extent));
  for_packs<size>(name, extent, stream, std::move(operands), body);
}

template <class Kernel, class T>
void elements(const char* name, const ElementRows<T>& rows, Extent extent, cudaStream_t stream) {
  constexpr int size = pack_size<T>;
  bool fit = true;
  for (int k = 0; k < Kernel::inputs; ++k)
    fit = fit && rows_fit(size, extent.width, rows.inputs[k]);
  for (int k = 0; k < Kernel::outputs; ++k)
    fit = fit && rows_fit(size, extent.width, rows.outputs[k]);
  fit ? packs_of_elements<size, Kernel>(name, rows, extent, stream)
      : packs_of_elements<1, Kernel>(name, rows, extent, stream);
}

/// What a part touches, of what lies `sequence` and `position` elements apart.
template <class T>
Operand heads_of(const RopeParts<T>& all, const RopeHeads<T>& part, const T* data,
                 std::int64_t sequence, std::int64_t position) {
  Operand heads = reads(Rows<const T>{data, position}, {all.positions, part.heads * all.head_dim});
  heads.groups = all.sequences;
  heads.group_stride = sequence * static_cast<std::int64_t>(sizeof(T));
  return heads;
}

template <class T>
std::vector<Operand> rope_operands(const RopeParts<T>& all) {
  std::vector<Operand> operands;
  for (int k = 0; k < all.count; ++k) {
    const RopeHeads<T>& part = all.parts[k];
    if (part.x != part.y)
      operands.push_back(heads_of(all, part, part.x, part.x_sequence, part.x_position));
    operands.push_back(written(heads_of<T>(all, part, part.y, part.y_sequence, part.y_position)));
  }
  return operands;
}

template <int size, bool aligned, class T>
__device__ Pack<T, size> turned(const Pack<T, size>& v, const Compute<T>* cos,
                                const Compute<T>* sin, Compute<T> sign) {
  using C = Compute<T>;
  const auto cosines = load<size / 2, aligned>(cos), sines = load<size / 2, aligned>(sin);
  Pack<T, size> result;
  for (int k = 0; k < size; k += 2) {
    const C c = cosines.items[k / 2], s = sign * sines.items[k / 2];
    const C a = wide(v.items[k]), b = wide(v.items[k + 1]);
    result.items[k] = narrow<T>(fma(a, c, -(b * s)));
    result.items[k + 1] = narrow<T>(fma(b, c, a * s));
  }
  return result;
}

/// A block takes one token, or as many as there are threads for: what depends on the token alone is
/// found once, and few threads divide.
template <int size, bool aligned, class T>
void rotate(const RopeParts<T>& all, const Compute<T>* cos, const Compute<T>* sin, Compute<T> sign,
            cudaStream_t stream) {
  std::int64_t width = 0;
  for (int k = 0; k < all.count; ++k) width += all.parts[k].heads * all.head_dim;
  const int packs = static_cast<int>(width / size),
            head_packs = static_cast<int>(all.head_dim / size);
  const int lanes = packs < threads_per_block ? std::max(packs, 1) : threads_per_block;
  const int tokens = threads_per_block / lanes;
  const std::int64_t rows = all.sequences * all.positions;
  const auto body = [=] __device__(std::int64_t block, unsigned char*) {
    const int token = static_cast<int>(threadIdx.x) / lanes;
    const std::int64_t row = block * tokens + token;
    if (token >= tokens || row >= rows) return;
    const auto [sequence, position] = divided(row, all.positions);
    const std::int64_t angles = position * all.head_dim / 2;
    for (int pack = static_cast<int>(threadIdx.x) - token * lanes; pack < packs; pack += lanes) {
      int k = 0;
      std::int64_t i = std::int64_t{pack} * size;
      for (; i >= all.parts[k].heads * all.head_dim; ++k) i -= all.parts[k].heads * all.head_dim;
      const RopeHeads<T>& part = all.parts[k];
      const std::int64_t angle = angles + pack % head_packs * (size / 2);
      const auto v =
          load<size, aligned>(part.x + sequence * part.x_sequence + position * part.x_position + i);
      T* const to = part.y + sequence * part.y_sequence + position * part.y_position + i;
      store<size, aligned>(
          to, part.turns ? turned<size, aligned>(v, cos + angle, sin + angle, sign) : v);
    }
  };
  std::vector<Operand> operands = rope_operands(all);
  operands.push_back(reads(cos, all.positions * all.head_dim / 2));
  operands.push_back(reads(sin, all.positions * all.head_dim / 2));
  launch({"rope", (rows + tokens - 1) / tokens, 0, stream, std::move(operands)}, body);
}

/// Whether all heads can be moved `size` elements at a time.
template <class T>
bool heads_fit(int size, const RopeParts<T>& all) {
  bool fit = all.head_dim % size == 0;
  for (int k = 0; k < all.count; ++k) {
    const RopeHeads<T>& part = all.parts[k];
    fit =
        fit && part.x_sequence % size == 0 && part.y_sequence % size == 0 &&
        rows_fit(size, all.head_dim, rows(part.x, part.x_position), rows(part.y, part.y_position));
  }
  return fit;
}

}  // namespace

#define TESSERA_LAUNCHER(name, Type)                                          \
  template <class T>                                                          \
  void name(const ElementRows<T>& rows, Extent extent, cudaStream_t stream) { \
    elements<Type>(#name, rows, extent, stream);                              \
  }                                                                           \
  template void name(const ElementRows<double>&, Extent, cudaStream_t);       \
  template void name(const ElementRows<float>&, Extent, cudaStream_t);        \
  template void name(const ElementRows<Bf16>&, Extent, cudaStream_t);
TESSERA_ELEMENT_KERNELS(TESSERA_LAUNCHER)
#undef TESSERA_LAUNCHER

template <class T>
void rope(const RopeParts<T>& parts, const Compute<T>* cos, const Compute<T>* sin, bool inverse,
          cudaStream_t stream) {
  constexpr int size = pack_size<T>;
  const auto sign = Compute<T>(inverse ? -1 : 1);
  const bool fit = heads_fit(size, parts) && is_aligned(cos, size / 2) && is_aligned(sin, size / 2);
  fit ? rotate<size, true>(parts, cos, sin, sign, stream)
      : rotate<2, false>(parts, cos, sin, sign, stream);
}

#define TESSERA_INSTANTIATE(T) \
  template void rope(const RopeParts<T>&, const Compute<T>*, const Compute<T>*, bool, cudaStream_t);
TESSERA_FOR_TYPES(TESSERA_INSTANTIATE)

}  // namespace tessera::kernels::device
