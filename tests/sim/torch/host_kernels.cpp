// SPDX-License-Identifier: Apache-2.0
#include "host_kernels.hpp"

#include "backend.hpp"
#include "device_results.hpp"
#include "fallback.hpp"
#include "host_float8.hpp"
#include "host_kernel.hpp"
#include "tessera/kernels/accumulation_type.hpp"

namespace tessera::sim {
namespace {

using at::Tensor;
using kernels::AttentionGradients;
using kernels::AttentionPart;
using kernels::AttentionValue;
using kernels::host_backend;
using kernels::RowsOf;

kernels::NormValue rms_norm(const Tensor& x, const Tensor& residual, const Tensor& weight,
                            double eps) {
  const Tensor y = at::empty_like(x),
               rstd = at::empty({x.size(0)}, x.options().dtype(kernels::accumulation_type(x))),
               sum = residual.defined() ? at::empty_like(x) : Tensor();
  HostKernel kernel("rms_norm", x);
  kernel.issue([x = kernel.reads(x), residual = kernel.reads(residual), sum = kernel.writes(sum),
                weight = kernel.reads(weight), eps, y = kernel.writes(y),
                rstd = kernel.writes(rstd)] {
    const kernels::NormValue made = host_backend.rms_norm(x, residual, weight, eps);
    if (sum.defined()) sum.copy_(made.sum);
    y.copy_(made.y);
    rstd.copy_(made.rstd);
  });
  return {sum, y, rstd};
}

std::pair<Tensor, Tensor> rms_norm_backward(const Tensor& dy, const Tensor& dsum, const Tensor& x,
                                            const Tensor& weight, const Tensor& rstd) {
  const Tensor dx = at::empty_like(x), dweight = at::empty_like(weight);
  HostKernel kernel("rms_norm_backward", x);
  kernel.issue([dy = kernel.reads(dy), dsum = kernel.reads(dsum), x = kernel.reads(x),
                weight = kernel.reads(weight), rstd = kernel.reads(rstd), dx = kernel.writes(dx),
                dweight = kernel.writes(dweight)] {
    const auto [of_x, of_weight] = host_backend.rms_norm_backward(dy, dsum, x, weight, rstd);
    dx.copy_(of_x);
    dweight.copy_(of_weight);
  });
  return {dx, dweight};
}

void run_elements(const char* name, kernels::ElementKernel on_host,
                  const kernels::ElementOperands& operands) {
  HostKernel kernel(name, operands.outputs.front().tensor);
  kernels::ElementOperands twins{{}, {}, operands.numbers};
  for (const RowsOf& rows : operands.inputs) twins.inputs.push_back(kernel.reads(rows));
  for (const RowsOf& rows : operands.outputs) twins.outputs.push_back(kernel.writes(rows));
  kernel.issue([on_host, twins = std::move(twins)] { on_host(twins); });
}

void rope(std::span<const kernels::RopePart> parts, const Tensor& cos, const Tensor& sin,
          bool inverse) {
  HostKernel kernel("rope", cos);
  std::vector<kernels::RopePart> twins;
  for (const auto& [x, y, turns] : parts) {
    const Tensor to = kernel.writes(y);
    twins.push_back({x.is_same(y) ? to : kernel.reads(x), to, turns});
  }
  kernel.issue([twins, cos = kernel.reads(cos), sin = kernel.reads(sin), inverse] {
    host_backend.rope(twins, cos, sin, inverse);
  });
}

void row_max(const RowsOf& logits, const Tensor& max) {
  HostKernel kernel("row_max", max);
  kernel.issue([logits = kernel.reads(logits), max = kernel.writes(max)] {
    host_backend.row_max(logits, max);
  });
}

void sum_exp(const RowsOf& logits, const Tensor& max, const Tensor& labels,
             std::int64_t vocab_begin, const kernels::SumExpAndTarget& out) {
  HostKernel kernel("sum_exp", max);
  kernel.issue(
      [logits = kernel.reads(logits), max = kernel.reads(max), labels = kernel.reads(labels),
       vocab_begin,
       out = kernels::SumExpAndTarget{kernel.writes(out.sum_exp), kernel.writes(out.target)}] {
        host_backend.sum_exp(logits, max, labels, vocab_begin, out);
      });
}

void softmax_gradient(const RowsOf& logits, const Tensor& max, const Tensor& sum_exp,
                      const Tensor& labels, std::int64_t vocab_begin, double scale) {
  HostKernel kernel("softmax_gradient", max);
  kernel.issue(
      [logits = kernel.writes(logits), max = kernel.reads(max), sum_exp = kernel.reads(sum_exp),
       labels = kernel.reads(labels), vocab_begin,
       scale] { host_backend.softmax_gradient(logits, max, sum_exp, labels, vocab_begin, scale); });
}

Tensor block_squares(const Tensor& values) {
  return run_on_host("sum_of_squares", {values}, [](const std::vector<Tensor>& twins) {
    return std::vector<Tensor>{host_backend.block_squares(twins[0])};
  })[0];
}

Tensor exact_squares(const Tensor& values) {
  return run_on_host("exact_squares", {values}, [](const std::vector<Tensor>& twins) {
    return std::vector<Tensor>{host_backend.exact_squares(twins[0])};
  })[0];
}

void adamw(const Tensor& param, const Tensor& grad, const Tensor& exp_avg, const Tensor& exp_avg_sq,
           const kernels::AdamWArguments& arguments, const Tensor& compute_copy) {
  HostKernel kernel("adamw", param);
  kernel.issue([param = kernel.writes(param), grad = kernel.reads(grad),
                exp_avg = kernel.writes(exp_avg), exp_avg_sq = kernel.writes(exp_avg_sq), arguments,
                copy = kernel.writes(compute_copy)] {
    host_backend.adamw(param, grad, exp_avg, exp_avg_sq, arguments, copy);
  });
}

void copy_columns(const Tensor& matrix, std::span<const Tensor> parts) {
  HostKernel kernel("copy_rows", matrix);
  std::vector<Tensor> twins;
  for (const Tensor& part : parts) twins.push_back(kernel.writes(part));
  kernel.issue(
      [matrix = kernel.reads(matrix), twins] { host_backend.copy_columns(matrix, twins); });
}

void copy_runs(const Tensor& into, std::span<const Tensor> tensors) {
  HostKernel kernel("copy_rows", into);
  std::vector<Tensor> twins;
  for (const Tensor& tensor : tensors) twins.push_back(kernel.reads(tensor));
  kernel.issue([into = kernel.writes(into), twins] { host_backend.copy_runs(into, twins); });
}

void add_runs(const Tensor& into, std::span<const Tensor> tensors) {
  HostKernel kernel("add_rows", into);
  std::vector<Tensor> twins;
  for (const Tensor& tensor : tensors) twins.push_back(kernel.reads(tensor));
  kernel.issue([into = kernel.writes(into), twins] { host_backend.add_runs(into, twins); });
}

Tensor embedding(const Tensor& table, const Tensor& tokens, std::int64_t row_begin) {
  const Tensor made = kernels::device::embedding_rows(table, tokens);
  HostKernel kernel("embedding", table);
  kernel.issue([table = kernel.reads(table), tokens = kernel.reads(tokens), row_begin,
                made = kernel.writes(made)] {
    made.copy_(host_backend.embedding(table, tokens, row_begin));
  });
  return made;
}

Tensor embedding_backward(const Tensor& gradient, const kernels::SortedTokens& sorted,
                          kernels::VocabularyRows of) {
  const Tensor made = kernels::device::table_gradient(gradient, of);
  HostKernel kernel("embedding_backward", gradient);
  kernel.issue([gradient = kernel.reads(gradient), tokens = kernel.reads(sorted.tokens),
                places = kernel.reads(sorted.places), of, made = kernel.writes(made)] {
    made.copy_(host_backend.embedding_backward(gradient, {tokens, places}, of));
  });
  return made;
}

Tensor sum_of_choices(const Tensor& rows, const Tensor& places, const Tensor& weights,
                      kernels::Paired paired) {
  const Tensor sums = kernels::device::choice_sums(rows, places);
  HostKernel kernel("sum_of_choices", rows);
  kernel.issue([paired, rows = kernel.reads(rows), places = kernel.reads(places),
                weights = kernel.reads(weights), sums = kernel.writes(sums)] {
    sums.copy_(host_backend.sum_of_choices(rows, places, weights, paired));
  });
  return sums;
}

std::pair<Tensor, Tensor> sum_of_choices_backward(const Tensor& gradient, const Tensor& rows,
                                                  std::int64_t count, const Tensor& places,
                                                  const Tensor& weights, kernels::Paired paired) {
  auto made = kernels::device::choice_gradients(gradient, count, places, weights, paired);
  HostKernel kernel("sum_of_choices_backward", gradient);
  kernel.issue([count, paired, gradient = kernel.reads(gradient), rows = kernel.reads(rows),
                places = kernel.reads(places), weights = kernel.reads(weights),
                of_rows = kernel.writes(made.first), of_weights = kernel.writes(made.second)] {
    const auto [rows_made, weights_made] =
        host_backend.sum_of_choices_backward(gradient, rows, count, places, weights, paired);
    of_rows.copy_(rows_made);
    if (of_weights.defined()) of_weights.copy_(weights_made);
  });
  return made;
}

/// Tensors of a part, the mask last where there is one, and then `more`.
std::vector<Tensor> inputs_of(const AttentionPart& part, std::initializer_list<Tensor> more = {}) {
  std::vector<Tensor> inputs{part.q, part.k, part.v};
  inputs.insert(inputs.end(), more);
  if (part.mask.defined()) inputs.push_back(part.mask);
  return inputs;
}

/// What is to be done with a part's tensors, without them.
struct PartRules {
  explicit PartRules(const AttentionPart& part)
      : scale(part.scale), causal(part.causal), masked(part.mask.defined()) {}
  AttentionPart on(const std::vector<Tensor>& twins) const {
    return {twins[0], twins[1], twins[2], scale, causal, masked ? twins.back() : Tensor()};
  }
  double scale;
  bool causal, masked;
};

/// Layouts of the results are the host's, too: later products have its bits only then.
AttentionValue attention_part(const AttentionPart& part) {
  const auto results =
      run_on_host("attention", inputs_of(part), [rules = PartRules(part)](const auto& twins) {
        const auto [out, logsumexp] = host_backend.attention_part(rules.on(twins));
        return std::vector<Tensor>{out, logsumexp};
      });
  return {results[0], results[1]};
}

AttentionGradients attention_part_backward(const AttentionPart& part, const AttentionValue& merged,
                                           const Tensor& grad_out) {
  const std::vector<Tensor> inputs = inputs_of(part, {merged.out, merged.logsumexp, grad_out});
  const auto results =
      run_on_host("attention_backward", inputs, [rules = PartRules(part)](const auto& twins) {
        const auto [q, k, v] =
            host_backend.attention_part_backward(rules.on(twins), {twins[3], twins[4]}, twins[5]);
        return std::vector<Tensor>{q, k, v};
      });
  return {results[0], results[1], results[2]};
}

const kernels::Backend table{
    .rms_norm = &rms_norm,
    .rms_norm_backward = &rms_norm_backward,
#define TESSERA_ENTRY(name, Type)                        \
  .name = [](const kernels::ElementOperands& operands) { \
    run_elements(#name, host_backend.name, operands);    \
  },
    TESSERA_ELEMENT_KERNELS(TESSERA_ENTRY)
#undef TESSERA_ENTRY
        .rope = &rope,
    .row_max = &row_max,
    .sum_exp = &sum_exp,
    .softmax_gradient = &softmax_gradient,
    .block_squares = &block_squares,
    .exact_squares = &exact_squares,
    .largest_of_lines = &largest_of_lines,
    .float8_scales = &float8_scales,
    .float8_bytes = &float8_bytes,
    .float8_rows = &float8_rows,
    .float8_both = &float8_both,
    .adamw = &adamw,
    .copy_columns = &copy_columns,
    .copy_runs = &copy_runs,
    .add_runs = &add_runs,
    .embedding = &embedding,
    .embedding_backward = &embedding_backward,
    .sum_of_choices = &sum_of_choices,
    .sum_of_choices_backward = &sum_of_choices_backward,
    .attends_in_bands = nullptr,
    .attention_part = &attention_part,
    .attention_part_backward = &attention_part_backward,
};

}  // namespace

void use_host_kernels() { kernels::register_backend(c10::DeviceType::CUDA, table); }

}  // namespace tessera::sim
