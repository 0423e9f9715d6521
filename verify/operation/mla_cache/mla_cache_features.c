/* SPDX-License-Identifier: MIT */
/* What random cases of the cache operations vary. */
#include "verify/operation/mla_cache/mla_cache.h"

#define CACHE                                                                            \
  { "kv", "*" }, { "tokens", "2..16 1|2 3..40 63..65 127..129 20..300" },                \
      { "page_size", "64 1|2|3 16|32 53|61|69 63|65 128 576 4..80" },                    \
      { "page_padding", "0 0 1..15 16..1200/16 17..1200" }, { "scale", "*" },            \
  {                                                                                      \
    "data", "*"                                                                          \
  }

const struct assay_feature assay_mla_cache_quantise_features[] = {
    CACHE,
    { "as", "- - - flashmla-quant-cuda" },
    { NULL, NULL },
};

const struct assay_feature assay_mla_cache_dequantise_features[] = {
    CACHE,
    { "as", "- - - flashmla-dequantise-f32" },
    { "unsafe", "0 0 0 1" },
    { NULL, NULL },
};
