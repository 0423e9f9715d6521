/* SPDX-License-Identifier: MIT */
/* The named numerics of quantise and its knobs. */
#include "ref/kernel/quantise.h"
#include "verify/operation/quantise/quantise.h"

#define STAGES                                                                           \
  {                                                                                      \
    assay_quantise_amax, assay_quantise_scale, assay_quantise_payload                    \
  }

static const struct assay_quantise_numerics divided = { .stage = STAGES };
static const struct assay_quantise_numerics multiplied = { .reciprocal = 1,
                                                           .stage = STAGES };
static const struct assay_quantise_numerics pytorch_cuda = {
    .reciprocal = 1,
    .overflow = ASSAY_E4M3_OVERFLOW_IS_NAN,
    .stage = STAGES,
};

const struct assay_named_numerics assay_quantise_numerics_table[] = {
    { "deepgemm", "DeepGEMM: sf = rn(max(amax, 1e-4) / 448), q = e4m3(x * rn(1 / sf))",
      &divided },
    { "deepgemm-reciprocal",
      "the same with rn(amax * rn(1 / 448)), as PyTorch divides by a constant in CUDA",
      &multiplied },
    { "pytorch-cuda",
      "DeepGEMM's functions as PyTorch runs them on a GPU: the same, infinities give NaN",
      &pytorch_cuda },
    { NULL, NULL, NULL },
};

static const struct assay_choice ceils[] = {
    { "deepgemm", ASSAY_CEIL_DEEPGEMM, "by the bits, 2^-126 to 2^127; NaN: 2^127" },
    { "cuda", ASSAY_CEIL_CUDA, "CUDA's conversion, 2^-127 to 2^127; NaN stays" },
    { NULL, 0, NULL },
};
static const struct assay_choice orders[] = {
    { "stored-scale", ASSAY_QUANTISE_BY_STORED_SCALE, "the scale is rounded up first" },
    { "raw-scale", ASSAY_QUANTISE_BY_RAW_SCALE,
      "x is divided by the scale before it is rounded up: a known fault" },
    { NULL, 0, NULL },
};
static const struct assay_choice payloads[] = {
    { "times-inverse", ASSAY_PAYLOAD_TIMES_INVERSE, "rn(x * rn(1 / sf))" },
    { "divided", ASSAY_PAYLOAD_DIVIDED, "rn(x / sf)" },
    { NULL, 0, NULL },
};
static const struct assay_choice nans[] = {
    { "propagates", ASSAY_AMAX_PROPAGATES_NAN, "torch.amax" },
    { "ignored", ASSAY_AMAX_IGNORES_NAN, "fmaxf" },
    { NULL, 0, NULL },
};
static const struct assay_choice overflows[] = {
    { "saturates", ASSAY_E4M3_SATURATES, "infinity becomes 448: cvt.rn.satfinite" },
    { "nan", ASSAY_E4M3_OVERFLOW_IS_NAN, "infinity becomes NaN" },
    { NULL, 0, NULL },
};

static const struct assay_choice ties[] = {
    { "even", ASSAY_E4M3_TIES_TO_EVEN, "cvt.rn" },
    { "away", ASSAY_E4M3_TIES_AWAY, "from zero, as software that adds a half does" },
    { NULL, 0, NULL },
};
static const struct assay_choice zeros[] = {
    { "signed", ASSAY_E4M3_ZERO_SIGNED, "-0 stays" },
    { "unsigned", ASSAY_E4M3_ZERO_UNSIGNED, "-0 becomes +0" },
    { NULL, 0, NULL },
};

#define AT(field) offsetof(struct assay_quantise_numerics, field)
const struct assay_knob assay_quantise_knobs[] = {
    { "reciprocal", "1: amax is multiplied by rn(1 / 448)", AT(reciprocal), NULL, 0, 1 },
    { "ceil", "how a scale is rounded up to a power of two", AT(ceil), ceils, 0, 0 },
    { "order", "which scale the payload is divided by", AT(order), orders, 0, 0 },
    { "payload", "how the payload is divided", AT(payload), payloads, 0, 0 },
    { "nan", "what a NaN in a block does to amax", AT(nan), nans, 0, 0 },
    { "overflow", "what e4m3 does beyond its range", AT(overflow), overflows, 0, 0 },
    { "ties", "where a payload half way between two codes goes", AT(ties), ties, 0, 0 },
    { "zero", "what becomes of a payload of -0", AT(zero), zeros, 0, 0 },
    { NULL, NULL, 0, NULL, 0, 0 },
};
