// SPDX-License-Identifier: Apache-2.0
#include "host/attention_in_rows.hpp"

#include <memory>

#include "host/run.hpp"
#include "tessera/kernels/accumulation_type.hpp"

namespace tessera::kernels::host {
namespace {

using at::Tensor;

const AttentionFunctions<double>& attention_of(double) { return host_functions().attention_f64; }
const AttentionFunctions<float>& attention_of(float) { return host_functions().attention_f32; }
const AttentionFunctions<Bf16>& attention_of(Bf16) { return host_functions().attention_bf16; }

/// Calls worth having: one for each sequence and key-value head, or where these are fewer, several
/// for parts of the queries. A function of the shapes alone, so that sums have one order whatever
/// the number of threads.
constexpr std::int64_t calls_wanted = 16;

/// A part with rows whose elements are contiguous, cut into calls.
class Calls {
 public:
  explicit Calls(const AttentionPart& part)
      : q_(rows(part.q)), k_(rows(part.k)), v_(rows(part.v)), kv_heads_(part.k.size(2)) {
    if (part.mask.defined()) mask_ = part.mask.contiguous();
    const std::int64_t queries = q_.size(1);
    shape_ = {queries,
              k_.size(1),
              q_.size(2) / kv_heads_,
              q_.size(3),
              v_.size(3),
              part.scale,
              part.causal,
              mask_.defined() ? const_pointer<unsigned char>(mask_) : nullptr};
    const std::int64_t blocks = (queries + attention_queries - 1) / attention_queries;
    parts_ = std::clamp<std::int64_t>(calls_wanted / std::max<std::int64_t>(1, heads()), 1,
                                      std::max<std::int64_t>(1, blocks));
    queries_of_part_ = (blocks + parts_ - 1) / parts_ * attention_queries;
  }

  /// `x` [B, S, H, d], its last dimension contiguous.
  static Tensor rows(const Tensor& x) { return x.stride(3) == 1 ? x : x.contiguous(); }

  const AttentionShape& shape() const { return shape_; }
  std::int64_t parts() const { return parts_; }
  std::int64_t queries_of_part() const { return queries_of_part_; }
  std::int64_t heads() const { return q_.size(0) * kv_heads_; }

  QueryRange range(std::int64_t part) const {
    return {std::min(part * queries_of_part_, shape_.queries),
            std::min((part + 1) * queries_of_part_, shape_.queries)};
  }

  template <class T>
  AttentionInputs<T> inputs(std::int64_t head) const {
    return {query_rows<const T>(q_, head), key_rows<const T>(k_, head),
            key_rows<const T>(v_, head)};
  }
  /// Of `x` [B, Sq, H, d]: the query heads of key-value head `head` of all B Hkv.
  template <class T>
  HeadRows<T> query_rows(const Tensor& x, std::int64_t head) const {
    const std::int64_t first = head % kv_heads_ * shape_.group;
    return {element<T>(x, head / kv_heads_ * x.stride(0) + first * x.stride(2)), x.stride(1),
            x.stride(2)};
  }
  /// Of `x` [B, Sk, Hkv, d].
  template <class T>
  Rows<T> key_rows(const Tensor& x, std::int64_t head) const {
    return {element<T>(x, head / kv_heads_ * x.stride(0) + head % kv_heads_ * x.stride(2)),
            x.stride(1)};
  }

 private:
  template <class T>
  static T* element(const Tensor& x, std::int64_t offset) {
    if constexpr (std::is_const_v<T>)
      return const_pointer<std::remove_const_t<T>>(x) + offset;
    else
      return pointer<T>(x) + offset;
  }

  Tensor q_, k_, v_, mask_;
  std::int64_t kv_heads_, parts_ = 1, queries_of_part_ = 0;
  AttentionShape shape_{};
};

/// body(head, part, scratch) for each call, in parallel.
template <class C, class Body>
void for_calls(const Calls& calls, const Body& body) {
  parallel_for(0, calls.heads() * calls.parts(), 1, [&](std::int64_t begin, std::int64_t end) {
    const auto size =
        static_cast<std::size_t>(attention_scratch_size(calls.shape(), calls.queries_of_part()));
    const std::unique_ptr<C[]> scratch(new C[size]);
    for (std::int64_t call = begin; call < end; ++call)
      body(call / calls.parts(), call % calls.parts(), scratch.get());
  });
}

}  // namespace

bool has_attention_rows() { return host_functions().attention_f32.forward != nullptr; }

AttentionValue attention_in_rows(const AttentionPart& part) {
  const Calls calls(part);
  const Tensor& q = part.q;
  const Tensor out = at::empty({q.size(0), q.size(1), q.size(2), part.v.size(3)}, q.options());
  const Tensor logsumexp =
      at::empty({q.size(0), q.size(1), q.size(2)}, q.options().dtype(accumulation_type(q)));
  with_type(q.scalar_type(), [&]<class T>(T t) {
    using C = Compute<T>;
    for_calls<C>(calls, [&](std::int64_t head, std::int64_t of_queries, C* scratch) {
      attention_of(t).forward(
          calls.shape(), calls.inputs<T>(head), calls.range(of_queries),
          {calls.query_rows<T>(out, head), calls.query_rows<C>(logsumexp, head)}, scratch);
    });
  });
  return {out, logsumexp};
}

AttentionGradients attention_in_rows_backward(const AttentionPart& part,
                                              const AttentionValue& merged,
                                              const Tensor& grad_out) {
  const Calls calls(part);
  const Tensor out = Calls::rows(merged.out), gradient = Calls::rows(grad_out);
  const Tensor dq = at::empty(part.q.sizes(), part.q.options()),
               dk = at::empty(part.k.sizes(), part.k.options()),
               dv = at::empty(part.v.sizes(), part.v.options());
  const std::int64_t size = key_gradient_size(calls.shape());
  const Tensor sums = at::zeros({calls.heads(), calls.parts(), size},
                                part.q.options().dtype(accumulation_type(part.q)));
  with_type(part.q.scalar_type(), [&]<class T>(T t) {
    using C = Compute<T>;
    for_calls<C>(calls, [&](std::int64_t head, std::int64_t of_queries, C* scratch) {
      attention_of(t).backward(
          calls.shape(), calls.inputs<T>(head), calls.range(of_queries),
          {calls.query_rows<const T>(out, head), calls.query_rows<const T>(gradient, head),
           calls.query_rows<const C>(merged.logsumexp, head)},
          calls.query_rows<T>(dq, head),
          pointer<C>(sums) + (head * calls.parts() + of_queries) * size, scratch);
    });
    parallel_for(0, calls.heads(), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t head = begin; head < end; ++head)
        attention_of(t).store(calls.shape(), pointer<C>(sums) + head * calls.parts() * size,
                              calls.parts(), calls.key_rows<T>(dk, head),
                              calls.key_rows<T>(dv, head));
    });
  });
  return {dq, dk, dv};
}

}  // namespace tessera::kernels::host
