/* SPDX-License-Identifier: MIT */
/* The cases on which a fault is looked for, in their order. */
#include "fuzz/selftest/selftest.h"
#include "verify/operation/draw.h"

#include <assert.h>
#include <string.h>

/* Small: what every check has to do with a case is some thirty runs. */
#define DRAWN_MULTIPLY_ADDS 100000.0

static const uint64_t drawn_seed = 20;

/* Data of another kind, which brings other checks into play. */
static const enum assay_data_kind other_kinds[] = { ASSAY_DATA_EXACT, ASSAY_DATA_POSITIVE,
                                                    ASSAY_DATA_NEEDLE };
enum { OTHER_KINDS = 3 };

static bool binds(const struct assay_case *the_case)
{
    union assay_problem_storage problem;
    struct assay_message ignored;
    return the_case->operation->bind(the_case, &problem, &ignored) == ASSAY_RAN;
}

static void parse_own(const char *line, struct assay_case *the_case)
{
    struct assay_message message;
    const enum assay_status status = assay_case_parse(line, the_case, &message);
    assert(status == ASSAY_RAN); /* tested for every row */
    (void)status;
}

static void draw(const struct assay_operation *operation, int index,
                 struct assay_case *the_case)
{
    struct assay_stream stream;
    assay_stream_open(&stream, drawn_seed, operation->name, "case", index);
    assay_draw(operation, &stream, DRAWN_MULTIPLY_ADDS, the_case);
}

/* Own case @index / OTHER_KINDS with another kind of data, if that is legal. */
static bool vary(const struct assay_fault *fault, int index, struct assay_case *the_case)
{
    const enum assay_data_kind kind = other_kinds[index % OTHER_KINDS];
    parse_own(fault->cases[index / OTHER_KINDS], the_case);
    if (the_case->data == kind || !assay_operation_takes(the_case->operation, kind))
        return false;
    the_case->data = kind;
    the_case->explicit_bits_count = 0;
    return binds(the_case);
}

bool assay_selftest_case(const struct assay_fault *fault, int index,
                         struct assay_case *the_case)
{
    int own = 0;
    while (own < ASSAY_MAX_FAULT_CASES && fault->cases[own])
        own++;
    if (index < own) {
        parse_own(fault->cases[index], the_case);
        return true;
    }
    index -= own;
    for (int i = 0; i < own * OTHER_KINDS; i++)
        if (vary(fault, i, the_case) && index-- == 0) return true;
    draw(assay_operation_find(fault->operation), index, the_case);
    return true;
}
