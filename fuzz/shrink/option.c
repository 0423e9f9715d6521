/* SPDX-License-Identifier: MIT */
/* Options to their defaults. */
#include "fuzz/shrink/attempt.h"

static enum assay_attempt try_value(struct assay_shrinker *shrinker, int index,
                                    int64_t value)
{
    const struct assay_parameter *const parameter =
        &shrinker->best.operation->parameters[index];
    struct assay_case the_case = shrinker->best;
    if (value < parameter->minimum || value > parameter->maximum)
        return ASSAY_ATTEMPT_ILLEGAL;
    the_case.value[index] = value;
    return assay_shrinker_try(shrinker, &the_case);
}

/* Another choice than the default costs a key: it has to save more than a few scales. */
static void try_choices(struct assay_shrinker *shrinker, int index)
{
    const struct assay_choice *row = shrinker->best.operation->parameters[index].choices;
    for (; row->name; row++) {
        struct assay_case the_case = shrinker->best;
        struct assay_shrink_measure measure;
        the_case.value[index] = row->value;
        if (assay_shrink_measure(&the_case, &measure) &&
            measure.size.elements <=
                shrinker->measure.size.elements - shrinker->measure.size.elements / 8)
            assay_shrinker_try(shrinker, &the_case);
    }
}

/* Fewer decimals, as long as that makes the line shorter. */
static void shrink_fraction(struct assay_shrinker *shrinker, int index)
{
    static const int64_t values[] = { 0, ASSAY_FRACTION_UNIT, ASSAY_FRACTION_UNIT / 2 };
    for (int i = 0; i < 3; i++)
        try_value(shrinker, index, values[i]);
    for (int64_t step = ASSAY_FRACTION_UNIT; step > 1; step /= 10)
        if (try_value(shrinker, index, shrinker->best.value[index] / step * step) ==
            ASSAY_ATTEMPT_TAKEN)
            return;
}

void assay_shrink_options(struct assay_shrinker *shrinker)
{
    const struct assay_parameter *const parameters = shrinker->best.operation->parameters;
    struct assay_case the_case = shrinker->best;
    the_case.is_unsafe = false; /* before it lets dimensions be what they should not */
    assay_shrinker_try(shrinker, &the_case);
    for (int i = 0; parameters[i].name; i++) {
        the_case = shrinker->best;
        if (parameters[i].is_list) continue;
        the_case.value[i] = parameters[i].default_value;
        if (!parameters[i].is_required) assay_shrinker_try(shrinker, &the_case);
        if (parameters[i].choices) try_choices(shrinker, i);
        if (parameters[i].is_fraction) shrink_fraction(shrinker, i);
    }
}
