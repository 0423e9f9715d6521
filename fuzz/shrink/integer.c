/* SPDX-License-Identifier: MIT */
/* Integers, alone or in lists, down to the smallest that shows the failure. */
#include "fuzz/shrink/attempt.h"
#include "fuzz/shrink/list.h"

enum { LADDER_TOP = 1 << 16 };

struct integer {
    struct assay_shrinker *shrinker;
    const struct assay_parameter *parameter;
    int index, place; /* of the parameter; in its list */
};

static int64_t value_of(const struct integer *integer)
{
    const struct assay_case *const best = &integer->shrinker->best;
    return integer->parameter->is_list
               ? assay_shrink_list_of(best, integer->parameter->name)
                     .value[integer->place]
               : best->value[integer->index];
}

static bool is_number(const struct assay_parameter *parameter)
{
    return !parameter->is_list && !parameter->choices && !parameter->is_fraction;
}

/* The best case with that value; false: the value is out of range. */
static bool change(const struct integer *integer, int64_t value,
                   struct assay_case *the_case)
{
    const struct assay_parameter *const parameter = integer->parameter;
    *the_case = integer->shrinker->best;
    if (value < parameter->minimum || value > parameter->maximum) return false;
    if (parameter->is_list) {
        struct assay_shrink_list list = assay_shrink_list_of(the_case, parameter->name);
        list.value[integer->place] = value;
        assay_shrink_list_set(the_case, parameter->name, &list);
    } else {
        the_case->value[integer->index] = value;
    }
    return true;
}

static enum assay_attempt try_value(const struct integer *integer, int64_t value)
{
    struct assay_case the_case;
    return change(integer, value, &the_case)
               ? assay_shrinker_try(integer->shrinker, &the_case)
               : ASSAY_ATTEMPT_ILLEGAL;
}

/* From the smallest value up, until one fails. Those above the present value are for keys
 * whose 0 stands for more. */
static void climb(const struct integer *integer)
{
    for (int64_t value = integer->parameter->minimum; value <= LADDER_TOP;
         value = value < 4 ? value + 1 : value * 2)
        if (try_value(integer, value) == ASSAY_ATTEMPT_TAKEN) return;
}

/* In steps that are powers of two, as tiles are: legal values stay legal. */
static void descend(const struct integer *integer)
{
    int64_t step = 1;
    while (step <= value_of(integer) / 2)
        step *= 2;
    for (; step > 0; step /= 2)
        while (try_value(integer, value_of(integer) - step) == ASSAY_ATTEMPT_TAKEN)
            ;
}

void assay_shrink_integer(struct assay_shrinker *shrinker, int index, int place)
{
    const struct assay_parameter *const parameter =
        &shrinker->best.operation->parameters[index];
    const struct integer integer = { shrinker, parameter, index, place };
    climb(&integer);
    descend(&integer);
}

void assay_shrink_dimensions(struct assay_shrinker *shrinker)
{
    const struct assay_parameter *const parameters = shrinker->best.operation->parameters;
    for (int i = 0; parameters[i].name; i++)
        if (is_number(&parameters[i])) assay_shrink_integer(shrinker, i, 0);
}
