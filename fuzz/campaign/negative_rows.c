/* SPDX-License-Identifier: MIT */
#include "fuzz/campaign/negative.h"

#include <stddef.h>

#define GROUPED_ROWS(operation)                                                          \
  { operation, "n=@n+4", "n is no multiple of 8" },                                      \
      { operation, "k=@k+8", "k is no multiple of 16" },                                 \
      { operation, "a_format=e2m1", "e2m1 needs recipe mx, which no group has" },        \
  {                                                                                      \
    operation, "k=16400 out=bf16 data=exact", "such sums do not stay exact in bf16"      \
  }

#define K_GROUPED_ROWS(operation)                                                        \
  { operation, "m=@m+64", "m is no multiple of 128" },                                   \
      { operation, "ks=128,64", "a group's K is no multiple of 128" },                   \
      { operation, "n=@n+4", "n is no multiple of 8" },                                  \
  {                                                                                      \
    operation, "ks=-128", "K is negative"                                                \
  }

const struct assay_negative assay_negatives[] = {
    { "fp8_gemm_nt", "n=@n+4", "n is no multiple of 8" },
    { "fp8_gemm_nt", "k=@k+8", "k is no multiple of 16" },
    { "fp8_gemm_nt", "k=64 a_stride=48", "a_stride is shorter than a row" },
    { "fp8_gemm_nt", "k=64 b_stride=72", "b_stride is no multiple of 16 bytes" },
    { "fp8_gemm_nt", "n=64 out=bf16 d_stride=68", "d_stride is no multiple of 16 bytes" },
    { "fp8_gemm_nt", "recipe=1d1d out=bf16 c=0", "recipe 1d1d writes f32" },
    { "fp8_gemm_nt", "recipe=1d2d out=f32 c=1", "only recipe 1d1d accumulates" },
    { "fp8_gemm_nt", "recipe=mx out=f32 c=1", "recipe mx does not accumulate" },
    { "fp8_gemm_nt", "recipe=1d2d a_format=e2m1", "e2m1 needs recipe mx" },
    { "fp8_gemm_nt", "recipe=1d2d gran_k=32", "gran_k=32 needs recipe mx" },
    { "fp8_gemm_nt", "recipe=mx as=deepgemm-1d2d", "recipe mx has numerics of its own" },
    { "fp8_gemm_nt", "recipe=1d2d as=blackwell-mx", "the numerics are those of mx" },
    { "fp8_gemm_nt", "recipe=mx as=promote_k=128", "recipe mx never promotes" },
    { "fp8_gemm_nt", "recipe=1d2d as=promote_k=never", "scales change every 128 of K" },
    { "fp8_gemm_nt", "recipe=1d2d k=16400 out=bf16 data=exact",
      "such sums do not stay exact in bf16" },
    { "fp8_gemm_nt", "data=recorded", "recorded inputs need their file" },
    { "fp8_gemm_nt", "bits=a.@m+0.0:0", "there is no such row" },

    GROUPED_ROWS("m_grouped_fp8_gemm_nt_contiguous"),
    { "m_grouped_fp8_gemm_nt_contiguous", "group_m=64,-1", "a size is negative" },
    GROUPED_ROWS("m_grouped_fp8_gemm_nt_masked"),
    { "m_grouped_fp8_gemm_nt_masked", "groups=1 m_max=192 masked_m=1",
      "m_max is no multiple of 128" },
    { "m_grouped_fp8_gemm_nt_masked", "groups=1 m_max=128 masked_m=129",
      "masked_m is above m_max" },
    { "m_grouped_fp8_gemm_nt_masked", "groups=3 m_max=128 masked_m=1,2",
      "masked_m has not one value a group" },
    K_GROUPED_ROWS("k_grouped_fp8_gemm_nt_contiguous"),
    K_GROUPED_ROWS("k_grouped_fp8_gemm_tn_contiguous"),

    { "quantise", "k=64 x_stride=48", "x_stride is shorter than a row" },
    { "quantise", "k=64 q_stride=63", "q_stride is shorter than a row" },
    { "quantise", "data=cancel", "nothing cancels in a quantiser" },
    { "quantise", "scale=f32 as=order=raw-scale", "f32 scales are not rounded up" },

    { "scale_layout", "from=mn_major to=mn_major", "there is nothing to convert" },
    { "scale_layout", "from=packed_ue8m0 to=k_major gran_mn=128",
      "packed scales have one row for each of mn" },
    { "scale_layout", "from=k_major to=mn_major gran_mn=1 gran_k=32",
      "sm_90 kernels need gran_k=128" },
    { "scale_layout", "from=k_major to=mn_major gran_mn=128 gran_k=128",
      "sm_90 kernels read these in either layout" },
    { "scale_layout", "from=k_major to=packed_ue8m0 data=subnormal",
      "scales to be packed have exponent bits only" },
    { "scale_layout",
      "groups=0 mn=8 k=128 gran_mn=1 gran_k=128 from=k_major to=packed_ue8m0 data=normal "
      "bits=sf.0.0:3f800001",
      "scales to be packed have exponent bits only" },
    { "scale_layout", "data=cancel", "scales do not cancel" },
    { "scale_layout", "data=ties", "scales have no ties" },

    { "mla_cache_quantise", "kv=model1 scale=f32", "only v32 has f32 scales" },
    { "mla_cache_quantise", "data=cancel", "nothing cancels in a quantiser" },
    { "mla_cache_quantise", "page_size=0", "a page has room for a token" },
    { "mla_cache_dequantise", "kv=v41_fp8 scale=f32", "only v32 has f32 scales" },
    { "mla_cache_dequantise", "data=cancel", "nothing cancels in a quantiser" },
    { "mla_cache_dequantise", "kv=v41_fp4 scale=power_of_two data=ties",
      "products of v41_fp4 are exact" },
    { "mla_cache_dequantise",
      "kv=v32 tokens=1 page_size=64 page_padding=0 scale=power_of_two data=normal "
      "bits=k_cache.0.514:c0,k_cache.0.515:7f",
      "a scale is NaN" },
    { "mla_cache_dequantise",
      "kv=model1 tokens=1 page_size=1 page_padding=0 scale=power_of_two data=normal "
      "bits=k_cache.0.576:ff",
      "a scale is NaN" },

    { "mla_dense_decode", "h_q=3 h_k=2", "h_q is no multiple of h_k" },
    { "mla_dense_decode", "b=2 s_k=1,2,3", "s_k has not one value a request" },
    { "mla_dense_decode", "h_q=1 h_k=1 s_q=1 sms=161", "combine takes 160 parts" },
    { "mla_dense_decode", "softmax_scale=-0.5", "the scale is negative" },
    { "mla_dense_decode", "softmax_scale=0.0001", "masked scores would not stay lowest" },
    { "mla_dense_decode", "b=1 s_k=128 pages=1 table_columns=0", "two pages are needed" },
    { "mla_dense_decode", "b=1 s_k=128 pages=0 table_columns=1",
      "two columns are needed" },
    { "mla_dense_decode", "b=1 s_q=1 s_k=3 data=exact", "3 keys have no exact mean" },
    { "mla_dense_decode", "b=1 s_k=1 data=normal bits=cache_seqlens.0:2",
      "the length is not that of s_k" },
    { "mla_dense_decode", "b=1 s_k=1 data=normal bits=block_table.0.0:7fffffff",
      "there is no such page" },
    { "mla_dense_decode", "b=1 s_k=1 data=normal bits=num_splits.0:1",
      "splits are counted from 0" },
    { "mla_dense_decode", "as=naive,align_bits=13", "fma has no such bits" },
    { "mla_dense_decode", "as=flash,row_sum=pairs", "a plain row has no lanes" },

    { "mla_sparse_prefill", "topk=192 topk_length=-", "topk is no multiple of 128" },
    { "mla_sparse_prefill", "topk=128 topk_length=129", "a length is above topk" },
    { "mla_sparse_prefill", "s_q=2 topk_length=1,2,3",
      "topk_length has not one value a query token" },
    { "mla_sparse_prefill", "d_qk=512 kv_stride=504", "kv_stride is shorter than a key" },
    { "mla_sparse_prefill", "d_qk=512 kv_stride=516", "kv_stride is no multiple of 8" },
    { "mla_sparse_prefill", "softmax_scale=-0.5", "the scale is negative" },
    { "mla_sparse_prefill", "topk=384 topk_length=- invalid=0 data=exact",
      "384 keys have no exact mean" },
    { "mla_sparse_prefill",
      "s_q=1 topk=128 topk_length=1 data=normal bits=topk_length.0:81",
      "a length is above topk" },
    { "mla_sparse_prefill", "as=naive,align_bits=13", "fma has no such bits" },

    { "wgmma", "a_format=e4m3 b_format=bf16", "no instruction takes both" },
    { "wgmma", "n=@n+4", "n is no multiple of 8" },
    { "wgmma", "blocks=1 steps=2001 data=exact", "such sums do not stay exact" },
    { "wgmma", "a_format=e4m3 b_format=e4m3 as=unit=volta", "volta has no FP8" },
    { "sfu", "data=cancel", "nothing cancels in a function" },
    { "sfu", "data=ties", "the functions have no ties" },
    { "sfu", "count=0", "there is nothing to compute" },
    { "convert", "data=cancel", "nothing cancels in a conversion" },
    { "convert", "to=f32", "f32 is no narrower format" },
    { "convert", "count=0", "there is nothing to compute" },

    { "mla_plan",
      "attention=dense s_k=- topk=0 topk_length=- extra_topk=0 extra_topk_length=-",
      "dense attention needs s_k" },
    { "mla_plan", "attention=dense s_k=64 topk=64", "dense attention has no indices" },
    { "mla_plan", "attention=sparse s_k=64 topk=64", "sparse attention has no s_k" },
    { "mla_plan", "attention=sparse h_q=96 h_k=1 s_k=- topk=64 topk_length=-",
      "sparse attention has 64 or 128 heads" },
    { "mla_plan", "attention=sparse h_q=64 h_k=1 s_k=- topk=96 topk_length=-",
      "topk is no multiple of 64" },
    { "mla_plan", "attention=sparse h_q=64 h_k=1 s_k=- topk=64 topk_length=65",
      "a length is above topk" },
    { "mla_plan",
      "attention=dense h_q=3 h_k=2 s_k=1 topk=0 topk_length=- extra_topk=0 "
      "extra_topk_length=-",
      "h_k does not divide h_q" },
    { "mla_plan",
      "attention=dense b=2 h_q=1 h_k=1 s_k=1,2,3 topk=0 topk_length=- extra_topk=0 "
      "extra_topk_length=-",
      "s_k has not one value a request" },
    { "mla_plan",
      "attention=dense h_q=1 h_k=1 s_q=1 s_k=1 sms=161 parts=0 topk=0 topk_length=- "
      "extra_topk=0 extra_topk_length=-",
      "combine takes 160 parts" },

    { "mla_combine", "splits=161", "combine takes 160 splits" },
    { "mla_combine", "b=2 splits=2,3,4", "splits has not one value a request" },
    { "mla_combine", "empty=0.5 data=exact", "the kind itself says what is empty" },
    { "mla_combine", "empty=0.5 data=ties", "the kind itself says what is empty" },
    { "mla_combine", "b=2 splits=2 bits=num_splits.0:1", "splits are counted from 0" },
    { "mla_combine", "b=2 splits=2 bits=num_splits.1:4", "a request has no split" },
    { "mla_combine", "b=2 splits=2 bits=lseaccum.0.0.0:7fc00000", "an lse is NaN" },
    { "mla_combine", "b=2 splits=2 bits=lseaccum.0.0.0:7f800000", "an lse is infinite" },

    { "mla_sparse_decode", "topk=96 topk_length=-", "topk is no multiple of 64" },
    { "mla_sparse_decode", "kv=v32 topk_length=1", "v32 takes no lengths" },
    { "mla_sparse_decode", "kv=v32 extra_topk=64", "v32 has no extra cache" },
    { "mla_sparse_decode", "kv=model1 topk=64 topk_length=65", "a length is above topk" },
    { "mla_sparse_decode", "kv=model1 b=2 topk_length=1,2,3",
      "topk_length has not one value a request" },
    { "mla_sparse_decode", "kv=model1 extra_topk=64 extra_kv=v41_fp4",
      "v41_fp4 goes beside v41 only" },
    { "mla_sparse_decode", "kv=model1 extra_kv=- extra_topk=96 extra_topk_length=-",
      "extra_topk is no multiple of 64" },
    { "mla_sparse_decode", "extra_topk=0 extra_s_kv=64", "there is no extra cache" },
    { "mla_sparse_decode", "page_padding=8", "page_padding is no multiple of 16" },
    { "mla_sparse_decode", "kv=model1 scales=any", "model1 has no f32 scales" },
    { "mla_sparse_decode", "plan=blocks data=exact",
      "splits would have any count of keys" },
    { "mla_sparse_decode", "kv=v32 scales=any data=needle", "a kernel may round them" },
    { "mla_sparse_decode", "b=1 topk=64 s_kv=0 page_size=1 pages=1 topk_length=-",
      "64 pages are needed" },
    { "mla_sparse_decode", "h_q=64 s_q=1 sms=161", "combine takes 160 parts" },
    { "mla_sparse_decode",
      "kv=v32 b=1 s_q=1 topk=64 topk_length=- extra_kv=- extra_topk=- extra_s_kv=- "
      "extra_page_size=- extra_pages=- extra_topk_length=- pages=0 data=normal "
      "bits=indices.0.0.0:7fffffff",
      "there is no such slot" },
    { "mla_sparse_decode",
      "kv=v32 b=1 s_q=1 topk=64 topk_length=- extra_kv=- extra_topk=- extra_s_kv=- "
      "extra_page_size=- extra_pages=- extra_topk_length=- pages=0 data=normal "
      "bits=num_splits.0:1",
      "splits are counted from 0" },

    { "mla_absorb", "n=1 s_q=2", "there are more queries than tokens" },
    { "mla_absorb", "d_r=3", "elements are turned in pairs" },
    { "mla_absorb", "n=4 s_q=2 data=exact", "queries see different numbers of keys" },
    { "mla_absorb", "n=3 s_q=1 data=exact", "3 keys have no exact mean" },
    { "mla_absorb", "data=wide", "the kind is not one of the operation's" },
    { NULL, NULL, NULL },
};
