/* SPDX-License-Identifier: MIT */
/* The named numerics of mla_absorb and its knobs. */
#include "ref/kernel/mla_absorb.h"
#include "verify/operation/mla_absorb/mla_absorb.h"

#define STAGES                                                                           \
  {                                                                                      \
    assay_mla_absorb_rotate, assay_mla_absorb_weigh                                      \
  }

static const struct assay_mla_absorb_numerics bf16 = {
    .unit = ASSAY_MLA_ABSORB_TENSOR_CORE,
    .stage = STAGES,
};
static const struct assay_mla_absorb_numerics f32 = {
    .unit = ASSAY_MLA_ABSORB_FMA,
    .stored = { [ASSAY_MLA_ABSORB_C_KV] = ASSAY_MLA_ABSORB_F32,
                [ASSAY_MLA_ABSORB_C_Q] = ASSAY_MLA_ABSORB_F32,
                [ASSAY_MLA_ABSORB_ROTARY] = ASSAY_MLA_ABSORB_F32,
                [ASSAY_MLA_ABSORB_K] = ASSAY_MLA_ABSORB_F32,
                [ASSAY_MLA_ABSORB_Q] = ASSAY_MLA_ABSORB_F32,
                [ASSAY_MLA_ABSORB_V] = ASSAY_MLA_ABSORB_F32,
                [ASSAY_MLA_ABSORB_Q_LATENT] = ASSAY_MLA_ABSORB_F32,
                [ASSAY_MLA_ABSORB_P] = ASSAY_MLA_ABSORB_F32,
                [ASSAY_MLA_ABSORB_O_LATENT] = ASSAY_MLA_ABSORB_F32 },
    .stage = STAGES,
};

const struct assay_named_numerics assay_mla_absorb_numerics_table[] = {
    { "bf16", "every intermediate is stored in bf16, products on the tensor core",
      &bf16 },
    { "f32", "every intermediate is kept in f32, products by fma", &f32 },
    { NULL, NULL, NULL },
};

static const struct assay_choice units[] = {
    { "tensor-core", ASSAY_MLA_ABSORB_TENSOR_CORE,
      "wgmma on sm_90 where both matrices are bf16, fma elsewhere" },
    { "fma", ASSAY_MLA_ABSORB_FMA, "one f32 fma after the other" },
    { NULL, 0, NULL },
};
static const struct assay_choice storages[] = {
    { "bf16", ASSAY_MLA_ABSORB_BF16, "rounded to nearest even" },
    { "f32", ASSAY_MLA_ABSORB_F32, "kept" },
    { NULL, 0, NULL },
};

#define AT(store)                                                                        \
  offsetof(struct assay_mla_absorb_numerics, stored) +                                   \
      (size_t)ASSAY_MLA_ABSORB_##store * sizeof(int)

const struct assay_knob assay_mla_absorb_knobs[] = {
    { "unit", "what products run on", offsetof(struct assay_mla_absorb_numerics, unit),
      units, 0, 0 },
    { "c_kv", "the latent of keys and values", AT(C_KV), storages, 0, 0 },
    { "c_q", "the latent of queries", AT(C_Q), storages, 0, 0 },
    { "rotary", "rotary parts before they are turned", AT(ROTARY), storages, 0, 0 },
    { "k", "k_c, and k_r when turned", AT(K), storages, 0, 0 },
    { "q", "q_c, and q_r when turned", AT(Q), storages, 0, 0 },
    { "v", "values; expanded", AT(V), storages, 0, 0 },
    { "q_latent", "w_uk^T q_c; absorbed", AT(Q_LATENT), storages, 0, 0 },
    { "p", "weights as the values meet them; their sum is of f32", AT(P), storages, 0,
      0 },
    { "o_latent", "what attention gives; absorbed", AT(O_LATENT), storages, 0, 0 },
    { NULL, NULL, 0, NULL, 0, 0 },
};
