// SPDX-License-Identifier: Apache-2.0
#include "declare.hpp"

namespace tessera::config {

OptionList quantize_options() {
  constexpr std::string_view kConverters = "model.converters";
  return {
      OPTION(quantize.linear.float8.enable,
             "Matrix products of linear layers in float8; as model.converters = [\"float8\"]")
          .refused("Tessera multiplies no matrices in float8; leave the key out, and "
                   "training.mixed_precision_param = \"bfloat16\" is the fastest type")
          .is_ours(),
      OPTION(quantize.linear.float8.recipe_name, "Which blocks share a scale")
          .one_of({"tensorwise", "rowwise", "rowwise_with_gw_hp"})
          .refused_with(kConverters),
      OPTION(quantize.linear.float8.enable_fsdp_float8_all_gather, "Gather parameters in float8")
          .refused_with(kConverters),
      OPTION(quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp,
             "All scales in one reduction")
          .refused_with(kConverters),
      OPTION(quantize.linear.float8.filter_fqns, "Layers that are not converted")
          .refused_with(kConverters),
      OPTION(quantize.linear.float8.emulate, "Emulate float8 where the machine has none")
          .refused_with(kConverters),
      OPTION(quantize.linear.mx.recipe_name, "MX recipe of linear layers")
          .refused_with(kConverters),
      OPTION(quantize.linear.mx.mxfp8_dim1_cast_kernel_choice, "Kernel that casts along columns")
          .one_of({"triton", "cuda", "torch"})
          .refused_with(kConverters),
      OPTION(quantize.linear.mx.filter_fqns, "Layers that stay as they are")
          .refused_with(kConverters),
      OPTION(quantize.grouped_mm.float8.fqns, "Experts that compute in float8")
          .refused_with(kConverters),
      OPTION(quantize.grouped_mm.mx.recipe_name, "MX recipe of experts")
          .one_of({"mxfp8"})
          .refused_with(kConverters),
      OPTION(quantize.grouped_mm.mx.fqns, "Experts that compute in MX").refused_with(kConverters),
  };
}

}  // namespace tessera::config
