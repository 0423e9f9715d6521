/* SPDX-License-Identifier: MIT */
/* The settings of an operation's knobs that a search goes through: the named numerics,
 * and what lies one or two knobs away from them. */
#ifndef ASSAY_VERIFY_IDENTIFY_KNOB_SPACE_H
#define ASSAY_VERIFY_IDENTIFY_KNOB_SPACE_H

#include "verify/operation/operation.h"

#include <stddef.h>

/* A knob has at most so many values in a space, and when all its integers are added. */
enum { ASSAY_MAX_KNOB_VALUES = 64, ASSAY_MAX_KNOB_INTEGERS = 8192 };

enum assay_setting_state {
    ASSAY_SETTING_UNTRIED,
    ASSAY_SETTING_DIFFERS,
    ASSAY_SETTING_FITS, /* in all parts that were compared */
};

struct assay_knob_tally {
    int64_t parts;           /* compared so far, the differing one included */
    int64_t equal, elements; /* in those parts: judged elements, and how many are equal */
};

struct assay_knob_setting {
    _Alignas(max_align_t) char numerics[ASSAY_MAX_NUMERICS_BYTES];
    /* Its numerics as the problem lets them show, and the first setting of the space with
     * the same ones, which computes the same bits: -1 if there is none before it. */
    _Alignas(max_align_t) char settled[ASSAY_MAX_NUMERICS_BYTES];
    int twin;
    int row;            /* of operation->numerics that it was made from */
    int turned;         /* knobs turned away from that row: 0, 1, 2 */
    bool turns_integer; /* one of them has no choices */
    /* What a search found out. */
    enum assay_setting_state state;
    struct assay_knob_tally narrow, whole; /* narrow: in a few rows, looked at first */
    uint64_t bits; /* hash of what it computed in the first parts, one after the other */
};

struct assay_knob_space {
    const struct assay_operation *operation;
    const void *problem;
    int count, capacity;
    struct assay_knob_setting *item;
};

/* The values that are tried for a knob: all choices; all integers of a range of at most
 * ASSAY_MAX_KNOB_VALUES, of a wider one both ends, the powers of two, and @own with its
 * neighbours. Ascending for integers. Returns how many. */
int assay_knob_values(const struct assay_knob *knob, int own,
                      int values[ASSAY_MAX_KNOB_VALUES]);

/* The value of a knob in @numerics. */
int assay_knob_value(const struct assay_knob *knob, const void *numerics);

/* Whether two numerics agree in all knobs. */
bool assay_knobs_are_equal(const struct assay_operation *operation, const void *a,
                           const void *b);

/* Writes to @settled what the problem lets show of @numerics. */
void assay_knobs_settle(const struct assay_operation *operation, const void *problem,
                        const void *numerics, void *settled);

/* Each adds what makes sense for the problem and is not there yet, and returns ASSAY_RAN
 * or ASSAY_OUT_OF_MEMORY. The named numerics, in the table's order but for the problem's
 * default, which comes first: */
enum assay_status assay_knob_space_add_named(struct assay_knob_space *space);
/* All settings one knob away from row @row, for the knobs with choices or for those that
 * take an integer: */
enum assay_status assay_knob_space_add_singles(struct assay_knob_space *space, int row,
                                               bool turns_integer);
/* What integers of wide ranges, up to ASSAY_MAX_KNOB_INTEGERS, are still left out: */
enum assay_status assay_knob_space_add_integers(struct assay_knob_space *space, int row);
/* The setting with the knobs of both @first and @second turned, singles of one row,
 * unless it is the same knob. */
enum assay_status assay_knob_space_add_pair(struct assay_knob_space *space, int first,
                                            int second);

void assay_knob_space_close(struct assay_knob_space *space);

#endif
