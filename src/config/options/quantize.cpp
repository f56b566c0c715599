#include "declare.hpp"

namespace tessera::config {

OptionList quantize_options() {
  constexpr std::string_view kFloat8 = "quantize.linear.float8.enable";
  constexpr std::string_view kConverters = "model.converters";
  return {
      OPTION(quantize.linear.float8.enable,
             "Matrix products of linear layers in float8; as model.converters = [\"float8\"]")
          .later()
          .never_ignored()
          .is_ours(),
      OPTION(quantize.linear.float8.recipe_name, "Which blocks share a scale")
          .one_of({"tensorwise", "rowwise", "rowwise_with_gw_hp"})
          .with(kFloat8)
          .later(),
      OPTION(quantize.linear.float8.enable_fsdp_float8_all_gather, "Gather parameters in float8").with(kFloat8).later(),
      OPTION(quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp, "All scales in one reduction")
          .with(kFloat8)
          .later(),
      OPTION(quantize.linear.float8.filter_fqns, "Layers that stay as they are").with(kFloat8).later(),
      OPTION(quantize.linear.float8.emulate, "Emulate float8 where the machine has none").with(kFloat8).later(),
      OPTION(quantize.linear.mx.recipe_name, "MX recipe of linear layers").with(kConverters).later(),
      OPTION(quantize.linear.mx.mxfp8_dim1_cast_kernel_choice, "Kernel that casts along columns")
          .one_of({"triton", "cuda", "torch"})
          .with(kConverters)
          .later(),
      OPTION(quantize.linear.mx.filter_fqns, "Layers that stay as they are").with(kConverters).later(),
      OPTION(quantize.grouped_mm.float8.fqns, "Experts that compute in float8").with(kConverters).later(),
      OPTION(quantize.grouped_mm.mx.recipe_name, "MX recipe of experts").one_of({"mxfp8"}).with(kConverters).later(),
      OPTION(quantize.grouped_mm.mx.fqns, "Experts that compute in MX").with(kConverters).later(),
  };
}

}  // namespace tessera::config
