/* SPDX-License-Identifier: MIT */
/* The named numerics of attention. FlashMLA's are those of its sm_90 kernels at 9241ae3,
 * compiled with nvcc 13.0 and measured on H200; flash and naive are ours, plain f32
 * arithmetic to compare them with. */
#include "ref/kernel/mla_tile.h"

#define STAGES                                                                           \
  {                                                                                      \
    assay_mla_scores, assay_mla_weights, assay_mla_values, assay_mla_finish              \
  }

#define FLASHMLA_COMBINE                                                                 \
  {                                                                                      \
    .functions = ASSAY_MLA_FUNCTIONS_HARDWARE, .flush = 1,                               \
    .sink_product = ASSAY_MLA_SINK_FUSED, .lse_form = ASSAY_MLA_LSE_SEPARATE,            \
    .zero_weight = ASSAY_MLA_ZERO_WEIGHT_KEPT,                                           \
  }

#define PLAIN_COMBINE                                                                    \
  {                                                                                      \
    .functions = ASSAY_MLA_FUNCTIONS_ROUNDED, .flush = 0,                                \
    .sink_product = ASSAY_MLA_SINK_SEPARATE, .lse_form = ASSAY_MLA_LSE_SEPARATE,         \
    .zero_weight = ASSAY_MLA_ZERO_WEIGHT_KEPT,                                           \
  }

const struct assay_mla_numerics assay_mla_flashmla_dense = {
    .unit = ASSAY_MLA_TENSOR_CORE,
    .schedule = ASSAY_MLA_SEESAW,
    .tile_order = { ASSAY_MLA_TILES_ASCENDING, ASSAY_MLA_TILES_FROM_FOURTH },
    .mask = ASSAY_MLA_MASK_FINITE,
    .start = ASSAY_MLA_START_FINITE,
    .argument = ASSAY_MLA_ARGUMENT_FUSED,
    .functions = ASSAY_MLA_FUNCTIONS_HARDWARE,
    .row_sum = ASSAY_MLA_SUM_PAIRS,
    .p_rounding = ASSAY_MLA_P_NEAREST_EVEN,
    .right_p = ASSAY_MLA_RIGHT_P_RESCALED,
    .right_factor = ASSAY_MLA_RIGHT_PRODUCT,
    .odd_tail = ASSAY_MLA_TAIL_SKIPPED,
    .quotient = ASSAY_MLA_RECIPROCAL,
    .scale_constant = ASSAY_MLA_SCALE_DOUBLE,
    .dequantisation = ASSAY_MLA_SCALE_TO_BF16,
    .lse_form = ASSAY_MLA_LSE_FUSED,
    .sink_product = ASSAY_MLA_SINK_SEPARATE,
    .nan_row = ASSAY_MLA_NAN_AS_EMPTY,
    .flush = 1,
    .combine = FLASHMLA_COMBINE,
    .stage = STAGES,
};

const struct assay_mla_numerics assay_mla_flashmla_sparse_decode = {
    .unit = ASSAY_MLA_TENSOR_CORE,
    .schedule = ASSAY_MLA_ONE_CHAIN,
    .tile_order = { ASSAY_MLA_TILES_ASCENDING, ASSAY_MLA_TILES_ASCENDING },
    .mask = ASSAY_MLA_MASK_INFINITE,
    .start = ASSAY_MLA_START_FINITE,
    .argument = ASSAY_MLA_ARGUMENT_FUSED,
    .functions = ASSAY_MLA_FUNCTIONS_HARDWARE,
    .row_sum = ASSAY_MLA_SUM_ONE_BY_ONE,
    .p_rounding = ASSAY_MLA_P_NEAREST_EVEN,
    .right_p = ASSAY_MLA_RIGHT_P_AS_LEFT,
    .right_factor = ASSAY_MLA_RIGHT_PRODUCT,
    .odd_tail = ASSAY_MLA_TAIL_SKIPPED,
    .quotient = ASSAY_MLA_RECIPROCAL,
    .scale_constant = ASSAY_MLA_SCALE_SINGLE,
    .dequantisation = ASSAY_MLA_SCALE_TO_BF16,
    .lse_form = ASSAY_MLA_LSE_FUSED,
    .sink_product = ASSAY_MLA_SINK_SEPARATE,
    .nan_row = ASSAY_MLA_NAN_STAYS,
    .flush = 1,
    .combine = FLASHMLA_COMBINE,
    .stage = STAGES,
};

const struct assay_mla_numerics assay_mla_flashmla_sparse_prefill = {
    .unit = ASSAY_MLA_TENSOR_CORE,
    .schedule = ASSAY_MLA_SEESAW,
    .tile_order = { ASSAY_MLA_TILES_ASCENDING, ASSAY_MLA_TILES_FROM_FOURTH },
    .mask = ASSAY_MLA_MASK_INFINITE,
    .start = ASSAY_MLA_START_FINITE,
    .argument = ASSAY_MLA_ARGUMENT_FUSED,
    .functions = ASSAY_MLA_FUNCTIONS_HARDWARE,
    .row_sum = ASSAY_MLA_SUM_PAIRS,
    .p_rounding = ASSAY_MLA_P_NEAREST_EVEN,
    .right_p = ASSAY_MLA_RIGHT_P_RESCALED,
    .right_factor = ASSAY_MLA_RIGHT_EXPONENTIAL,
    .odd_tail = ASSAY_MLA_TAIL_MASKED,
    .quotient = ASSAY_MLA_RECIPROCAL,
    .scale_constant = ASSAY_MLA_SCALE_SINGLE,
    .dequantisation = ASSAY_MLA_SCALE_TO_BF16,
    .lse_form = ASSAY_MLA_LSE_FUSED,
    .sink_product = ASSAY_MLA_SINK_SEPARATE,
    .nan_row = ASSAY_MLA_NAN_STAYS,
    .flush = 1,
    .combine = FLASHMLA_COMBINE,
    .stage = STAGES,
};

const struct assay_mla_numerics assay_mla_flash = {
    .unit = ASSAY_MLA_FMA,
    .schedule = ASSAY_MLA_PLAIN,
    .tile_order = { ASSAY_MLA_TILES_ASCENDING, ASSAY_MLA_TILES_ASCENDING },
    .mask = ASSAY_MLA_MASK_INFINITE,
    .start = ASSAY_MLA_START_INFINITE,
    .argument = ASSAY_MLA_ARGUMENT_SEPARATE,
    .functions = ASSAY_MLA_FUNCTIONS_ROUNDED,
    .row_sum = ASSAY_MLA_SUM_ONE_LANE,
    .p_rounding = ASSAY_MLA_P_KEPT,
    .right_p = ASSAY_MLA_RIGHT_P_AS_LEFT,
    .right_factor = ASSAY_MLA_RIGHT_EXPONENTIAL,
    .odd_tail = ASSAY_MLA_TAIL_SKIPPED,
    .quotient = ASSAY_MLA_DIVISION,
    .scale_constant = ASSAY_MLA_SCALE_DOUBLE,
    .dequantisation = ASSAY_MLA_F32_PRODUCT,
    .lse_form = ASSAY_MLA_LSE_SEPARATE,
    .sink_product = ASSAY_MLA_SINK_SEPARATE,
    .nan_row = ASSAY_MLA_NAN_STAYS,
    .flush = 0,
    .combine = PLAIN_COMBINE,
    .stage = STAGES,
};

const struct assay_mla_numerics assay_mla_naive = {
    .unit = ASSAY_MLA_FMA,
    .schedule = ASSAY_MLA_MATERIALISED,
    .tile_order = { ASSAY_MLA_TILES_ASCENDING, ASSAY_MLA_TILES_ASCENDING },
    .mask = ASSAY_MLA_MASK_INFINITE,
    .start = ASSAY_MLA_START_INFINITE,
    .argument = ASSAY_MLA_ARGUMENT_SEPARATE,
    .functions = ASSAY_MLA_FUNCTIONS_ROUNDED,
    .row_sum = ASSAY_MLA_SUM_ONE_LANE,
    .p_rounding = ASSAY_MLA_P_KEPT,
    .right_p = ASSAY_MLA_RIGHT_P_AS_LEFT,
    .right_factor = ASSAY_MLA_RIGHT_EXPONENTIAL,
    .odd_tail = ASSAY_MLA_TAIL_SKIPPED,
    .quotient = ASSAY_MLA_DIVISION,
    .scale_constant = ASSAY_MLA_SCALE_DOUBLE,
    .dequantisation = ASSAY_MLA_F32_PRODUCT,
    .lse_form = ASSAY_MLA_LSE_SEPARATE,
    .sink_product = ASSAY_MLA_SINK_SEPARATE,
    .nan_row = ASSAY_MLA_NAN_STAYS,
    .flush = 0,
    .combine = PLAIN_COMBINE,
    .stage = STAGES,
};
