/* SPDX-License-Identifier: MIT */
/* The keys of every case: seed, kind of data, numerics, explicit elements. */
#include "fuzz/shrink/attempt.h"
#include "verify/case/text.h"

#include <string.h>

static void drop_elements(struct assay_shrinker *shrinker)
{
    struct assay_case the_case = shrinker->best;
    the_case.explicit_bits_count = 0;
    assay_shrinker_try(shrinker, &the_case);
    for (int i = shrinker->best.explicit_bits_count - 1; i >= 0; i--) {
        the_case = shrinker->best;
        memmove(&the_case.explicit_bits[i], &the_case.explicit_bits[i + 1],
                sizeof(the_case.explicit_bits[0]) *
                    (size_t)(--the_case.explicit_bits_count - i));
        assay_shrinker_try(shrinker, &the_case);
    }
}

/* Without part number @dropped of the text; false: there is none. */
static bool without_part(const char *numerics, int dropped, char *text, size_t size)
{
    struct assay_text rest = assay_text_open(text, size);
    int part = 0;
    for (const char *at = numerics; *at; part++) {
        const size_t length = strcspn(at, ",");
        if (part != dropped)
            assay_text_add(&rest, "%s%.*s", rest.length ? "," : "", (int)length, at);
        at += length + (at[length] == ',');
    }
    return dropped < part;
}

static void shrink_numerics(struct assay_shrinker *shrinker)
{
    struct assay_case the_case = shrinker->best;
    the_case.numerics[0] = '\0';
    assay_shrinker_try(shrinker, &the_case);
    int part = 0;
    for (;;) {
        the_case = shrinker->best;
        if (!without_part(shrinker->best.numerics, part, the_case.numerics,
                          sizeof(the_case.numerics)))
            return;
        if (assay_shrinker_try(shrinker, &the_case) != ASSAY_ATTEMPT_TAKEN) part++;
    }
}

/* Data of zeros with a few others are what the shrinker itself chooses. */
static void shrink_kind_and_seed(struct assay_shrinker *shrinker)
{
    struct assay_case the_case = shrinker->best;
    if (the_case.data != ASSAY_DATA_ZERO) the_case.data = ASSAY_DATA_NORMAL;
    if (assay_shrinker_try(shrinker, &the_case) == ASSAY_ATTEMPT_TAKEN) return;
    for (the_case.seed = 1; the_case.seed <= ASSAY_SHRINK_SEEDS; the_case.seed++)
        if (assay_shrinker_try(shrinker, &the_case) == ASSAY_ATTEMPT_TAKEN) return;
    the_case = shrinker->best;
    for (the_case.seed = 1; the_case.seed <= ASSAY_SHRINK_SEEDS; the_case.seed++)
        if (assay_shrinker_try(shrinker, &the_case) == ASSAY_ATTEMPT_TAKEN) return;
}

void assay_shrink_data(struct assay_shrinker *shrinker)
{
    if (shrinker->best.explicit_bits_count) drop_elements(shrinker);
    if (*shrinker->best.numerics) shrink_numerics(shrinker);
    shrink_kind_and_seed(shrinker);
}
