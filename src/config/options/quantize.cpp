// SPDX-License-Identifier: Apache-2.0
#include "declare.hpp"
#include "tessera/config/converters.hpp"

namespace tessera::config {

namespace {

bool float8(const JobConfig& job) { return wants(job, Converter::float8_linear); }
bool mx(const JobConfig& job) { return wants(job, Converter::mx_linear); }
bool float8_experts(const JobConfig& job) { return wants(job, Converter::float8_experts); }
bool mx_experts(const JobConfig& job) { return wants(job, Converter::mx_experts); }

}  // namespace

OptionList quantize_options() {
  return {
      OPTION(quantize.linear.float8.enable,
             "Round the operands of linear layers to float8; as model.converters = "
             "[\"quantize.linear.float8\"]")
          .is_ours(),
      OPTION(quantize.linear.float8.recipe_name,
             "What shares a scale: a tensor, a row or column of it, or a block of 128; with_gw_hp: "
             "gradients of weights are not rounded; none = tensorwise")
          .one_of({"tensorwise", "rowwise", "rowwise_with_gw_hp", "blockwise"})
          .only_if(&float8),
      OPTION(quantize.linear.float8.enable_fsdp_float8_all_gather,
             "Round weights before they are gathered, and gather their bytes; recipe tensorwise")
          .only_if(&float8),
      OPTION(quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp,
             "Scales of all gathered weights in one reduction")
          .harmless("with enable_fsdp_float8_all_gather, ranks always agree on the scales of all "
                    "weights of a stage together")
          .only_if(&float8),
      OPTION(quantize.linear.float8.filter_fqns,
             "Layers that stay as they are: parts of names; auto_filter_small_kn = those that an "
             "H100 multiplies no faster in float8"),
      OPTION(quantize.linear.float8.emulate, "Emulate float8 on GPUs, too; the host always does")
          .only_if(&float8),
      OPTION(
          quantize.linear.mx.recipe_name,
          "MX recipe of linear layers: 32 elements share a scale, which is rounded down, or with "
          "rceil up")
          .one_of({"mxfp8_cublas", "mxfp8_cublas_rceil", "mxfp8_emulated", "mxfp4_cutlass",
                   "mxfp4_emulated"})
          .works_with({"mxfp8_cublas", "mxfp8_cublas_rceil", "mxfp8_emulated"},
                      "Tessera rounds to no 4-bit format; use \"mxfp8_cublas\"")
          .only_if(&mx),
      OPTION(quantize.linear.mx.mxfp8_dim1_cast_kernel_choice, "Kernel that casts along columns")
          .one_of({"triton", "cuda", "torch"})
          .harmless("Tessera has one way to round along both dimensions")
          .only_if(&mx),
      OPTION(quantize.linear.mx.filter_fqns, "Layers that stay as they are: parts of names"),
      OPTION(quantize.grouped_mm.float8.fqns,
             "Experts that are rounded to float8: parts of names, such as experts")
          .only_if(&float8_experts),
      OPTION(quantize.grouped_mm.mx.recipe_name, "MX recipe of experts: scales are rounded up")
          .one_of({"mxfp8"})
          .only_if(&mx_experts),
      OPTION(quantize.grouped_mm.mx.fqns,
             "Experts that are rounded to MXFP8: parts of names, such as experts")
          .only_if(&mx_experts),
  };
}

}  // namespace tessera::config
