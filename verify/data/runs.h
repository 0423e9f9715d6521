/* SPDX-License-Identifier: MIT */
/* Data kind runs: the elements of a logical row come in runs of random length, all of one
 * run in one mode that arithmetic likes to get wrong. A row is walked from its first
 * element on, so that an element does not depend on how many follow it. */
#ifndef ASSAY_VERIFY_DATA_RUNS_H
#define ASSAY_VERIFY_DATA_RUNS_H

#include "ref/format/minifloat.h"
#include "verify/data/stream.h"

/* Signs are random unless said otherwise. There is no NaN and no infinity. */
enum assay_run_mode {
    ASSAY_RUN_ZEROS,
    ASSAY_RUN_LARGEST,     /* the largest value, with one sign */
    ASSAY_RUN_ALTERNATING, /* one value, its sign in turns */
    ASSAY_RUN_SMALLEST,    /* the smallest normal value */
    ASSAY_RUN_SUBNORMAL,
    ASSAY_RUN_POWERS_OF_TWO,
    ASSAY_RUN_REPEATED,      /* one value with one sign */
    ASSAY_RUN_FULL_MANTISSA, /* all mantissa bits set */
    ASSAY_RUN_ORDINARY,      /* bell-shaped around zero */
    ASSAY_RUN_MODES
};

enum { ASSAY_LONGEST_RUN = 64, ASSAY_LONGEST_SCALE_RUN = 4 };

/* Where the walk through a row stands. */
struct assay_runs {
    struct assay_stream stream;
    uint32_t left;   /* elements of the run to come */
    uint32_t mode;   /* of the run */
    uint32_t choice; /* a draw of the run's own: its value and sign */
};

/* Begins a row whose draws are those of @stream. */
void assay_runs_begin(struct assay_runs *runs, const struct assay_stream *stream);

/* What a tensor's values may be. Alternating and repeated values, powers of two and full
 * mantissas lie up to 16 binades from @ordinary, as far as the format goes. */
struct assay_run_range {
    const struct assay_minifloat *format; /* one with a sign */
    uint32_t largest;                     /* code, without the sign */
    double ordinary;                      /* standard deviation of ordinary values */
};

/* Values up to @largest, or the format's largest if that is less or @largest is 0. */
struct assay_run_range assay_run_range(enum assay_format format, double largest,
                                       double ordinary);

/* Code of the row's next element. Elements of one row may have different ranges. */
uint32_t assay_runs_next(struct assay_runs *runs, const struct assay_run_range *range);

/* Exponents of scales: those of the ends, and @count usual ones from @usual on. */
struct assay_scale_range {
    int smallest, largest, usual, count;
};

struct assay_run_scale { /* 2^exponent * (1 + mantissa / 2^23) */
    int exponent;
    uint32_t mantissa;
};

/* The row's next scale. Modes of its runs: powers of two and full mantissas with the
 * usual exponents, the smallest power of two, the largest one with a full mantissa. */
struct assay_run_scale assay_runs_next_scale(struct assay_runs *runs,
                                             const struct assay_scale_range *range);

/* As bits of an f32, subnormal below 2^-126 (@exponent from -149 to 127). */
uint32_t assay_run_scale_bits(struct assay_run_scale scale);

#endif
