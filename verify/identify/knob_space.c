/* SPDX-License-Identifier: MIT */
#include "verify/identify/knob_space.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

int assay_knob_value(const struct assay_knob *knob, const void *numerics)
{
    int value;
    memcpy(&value, (const char *)numerics + knob->offset, sizeof(value));
    return value;
}

static void set_value(const struct assay_knob *knob, void *numerics, int value)
{
    memcpy((char *)numerics + knob->offset, &value, sizeof(value));
}

bool assay_knobs_are_equal(const struct assay_operation *operation, const void *a,
                           const void *b)
{
    for (const struct assay_knob *knob = operation->knobs; knob->name; knob++)
        if (assay_knob_value(knob, a) != assay_knob_value(knob, b)) return false;
    return true;
}

void assay_knobs_settle(const struct assay_operation *operation, const void *problem,
                        const void *numerics, void *settled)
{
    memcpy(settled, numerics, operation->numerics_bytes);
    if (operation->settle) operation->settle(problem, settled);
}

/* Whether an integer of a wide range is worth trying. */
static bool is_useful(const struct assay_knob *knob, int64_t value, int64_t own)
{
    const bool is_power = value > 0 && (value & (value - 1)) == 0;
    const bool is_near = value >= own - 1 && value <= own + 1;
    return is_power || is_near || value == knob->minimum || value == knob->maximum;
}

int assay_knob_values(const struct assay_knob *knob, int own,
                      int values[ASSAY_MAX_KNOB_VALUES])
{
    int count = 0;
    for (const struct assay_choice *choice = knob->choices; choice && choice->name;
         choice++) {
        assert(count < ASSAY_MAX_KNOB_VALUES);
        values[count++] = choice->value;
    }
    if (knob->choices) return count;
    const bool is_narrow = (int64_t)knob->maximum - knob->minimum < ASSAY_MAX_KNOB_VALUES;
    for (int64_t value = knob->minimum; value <= knob->maximum; value++)
        if (is_narrow || is_useful(knob, value, own)) values[count++] = (int)value;
    return count;
}

static bool is_there(const struct assay_knob_space *space, const void *numerics)
{
    for (int i = 0; i < space->count; i++)
        if (assay_knobs_are_equal(space->operation, space->item[i].numerics, numerics))
            return true;
    return false;
}

static void find_twin(const struct assay_knob_space *space,
                      struct assay_knob_setting *setting)
{
    assay_knobs_settle(space->operation, space->problem, setting->numerics,
                       setting->settled);
    setting->twin = -1;
    for (int i = 0; i < space->count && setting->twin < 0; i++)
        if (assay_knobs_are_equal(space->operation, space->item[i].settled,
                                  setting->settled))
            setting->twin = i;
}

static enum assay_status add(struct assay_knob_space *space,
                             const struct assay_knob_setting *setting)
{
    struct assay_message ignored;
    if (space->operation->check_numerics(space->problem, setting->numerics, &ignored) !=
            ASSAY_RAN ||
        is_there(space, setting->numerics))
        return ASSAY_RAN;
    if (space->count == space->capacity) {
        const int capacity = 2 * space->capacity + 64;
        void *const grown = aligned_alloc(_Alignof(struct assay_knob_setting),
                                          (size_t)capacity * sizeof(*space->item));
        if (!grown) return ASSAY_OUT_OF_MEMORY;
        if (space->count)
            memcpy(grown, space->item, (size_t)space->count * sizeof(*space->item));
        free(space->item);
        space->item = grown;
        space->capacity = capacity;
    }
    struct assay_knob_setting *const added = &space->item[space->count];
    *added = *setting;
    find_twin(space, added);
    space->count++;
    return ASSAY_RAN;
}

static struct assay_knob_setting named(const struct assay_operation *operation, int row)
{
    struct assay_knob_setting setting = { .row = row };
    assert(operation->numerics_bytes <= sizeof(setting.numerics));
    memcpy(setting.numerics, operation->numerics[row].numerics,
           operation->numerics_bytes);
    return setting;
}

enum assay_status assay_knob_space_add_named(struct assay_knob_space *space)
{
    const struct assay_operation *const operation = space->operation;
    const struct assay_named_numerics *const first =
        operation->default_numerics(space->problem);
    enum assay_status status = ASSAY_RAN;
    for (int row = 0; operation->numerics[row].name && status == ASSAY_RAN; row++) {
        if (strcmp(operation->numerics[row].name, first->name) != 0) continue;
        const struct assay_knob_setting setting = named(operation, row);
        status = add(space, &setting);
    }
    for (int row = 0; operation->numerics[row].name && status == ASSAY_RAN; row++) {
        const struct assay_knob_setting setting = named(operation, row);
        status = add(space, &setting);
    }
    return status;
}

static enum assay_status add_value(struct assay_knob_space *space, int row,
                                   const struct assay_knob *knob, int value)
{
    struct assay_knob_setting setting = named(space->operation, row);
    if (value == assay_knob_value(knob, setting.numerics)) return ASSAY_RAN;
    setting.turned = 1;
    setting.turns_integer = !knob->choices;
    set_value(knob, setting.numerics, value);
    return add(space, &setting);
}

static enum assay_status add_values(struct assay_knob_space *space, int row,
                                    const struct assay_knob *knob)
{
    const void *const numerics = space->operation->numerics[row].numerics;
    int values[ASSAY_MAX_KNOB_VALUES];
    const int count = assay_knob_values(knob, assay_knob_value(knob, numerics), values);
    enum assay_status status = ASSAY_RAN;
    for (int i = 0; i < count && status == ASSAY_RAN; i++)
        status = add_value(space, row, knob, values[i]);
    return status;
}

enum assay_status assay_knob_space_add_singles(struct assay_knob_space *space, int row,
                                               bool turns_integer)
{
    const struct assay_knob *const knobs = space->operation->knobs;
    enum assay_status status = ASSAY_RAN;
    for (int i = 0; knobs[i].name && status == ASSAY_RAN; i++)
        if (!knobs[i].choices == turns_integer)
            status = add_values(space, row, &knobs[i]);
    return status;
}

enum assay_status assay_knob_space_add_integers(struct assay_knob_space *space, int row)
{
    const struct assay_knob *const knobs = space->operation->knobs;
    enum assay_status status = ASSAY_RAN;
    for (int i = 0; knobs[i].name && status == ASSAY_RAN; i++) {
        const int64_t values = (int64_t)knobs[i].maximum - knobs[i].minimum + 1;
        if (knobs[i].choices || values > ASSAY_MAX_KNOB_INTEGERS) continue;
        for (int64_t at = 0; at < values && status == ASSAY_RAN; at++)
            status = add_value(space, row, &knobs[i], knobs[i].minimum + (int)at);
    }
    return status;
}

enum assay_status assay_knob_space_add_pair(struct assay_knob_space *space, int first,
                                            int second)
{
    const struct assay_knob_setting *const a = &space->item[first];
    const struct assay_knob_setting *const b = &space->item[second];
    struct assay_knob_setting both = named(space->operation, a->row);
    const struct assay_knob_setting row = both;
    assert(a->row == b->row && a->turned == 1 && b->turned == 1);
    for (const struct assay_knob *knob = space->operation->knobs; knob->name; knob++) {
        const int own = assay_knob_value(knob, row.numerics);
        const int from_a = assay_knob_value(knob, a->numerics);
        const int from_b = assay_knob_value(knob, b->numerics);
        if (from_a != own && from_b != own) return ASSAY_RAN;
        set_value(knob, both.numerics, from_a != own ? from_a : from_b);
    }
    both.turned = 2;
    both.turns_integer = a->turns_integer || b->turns_integer;
    return add(space, &both);
}

void assay_knob_space_close(struct assay_knob_space *space)
{
    free(space->item);
    *space = (struct assay_knob_space){ 0 };
}
