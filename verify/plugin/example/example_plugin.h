/* SPDX-License-Identifier: MIT */
/* What the example plugin and its ways of being wrong share. A plugin of your own needs
 * none of this. */
#ifndef ASSAY_VERIFY_PLUGIN_EXAMPLE_EXAMPLE_PLUGIN_H
#define ASSAY_VERIFY_PLUGIN_EXAMPLE_EXAMPLE_PLUGIN_H

#include "verify/plugin/assay_plugin.h"

enum example_mode {
    EXAMPLE_HONEST,
    EXAMPLE_CRASH,
    EXAMPLE_ABORT,
    EXAMPLE_WRITE_INPUT,
    EXAMPLE_HANG,
    EXAMPLE_ENDLESS_OUTPUT,
    EXAMPLE_NOISE,
    EXAMPLE_EXIT,
    EXAMPLE_OUT_OF_MEMORY,
    EXAMPLE_PAST_THE_END,
    EXAMPLE_UNWRITTEN,
    EXAMPLE_READS_PADDING,
    EXAMPLE_WRONG_TILE,
    EXAMPLE_ONE_IN_TEN,
    EXAMPLE_LEAKS_PADDING,
    EXAMPLE_ADDS_UP,
    EXAMPLE_LOOKS_AROUND,
    EXAMPLE_FALSE_CLAIM,
    EXAMPLE_UNKNOWN_CLAIM,
    EXAMPLE_CRASH_IN_CLAIM,
    EXAMPLE_BREAK_PROTOCOL,
    EXAMPLE_FLOOD_PROTOCOL,
    EXAMPLE_CLOSE_PROTOCOL,
    EXAMPLE_FAIL,
};

struct example_run {
    const struct assay_call *call;
    const struct assay_plugin_tensor *a, *b, *sfa, *sfb, *d;
    enum example_mode mode;
    int launches; /* until now, the current one included */
};

float example_e4m3_value(uint8_t code);
float example_load(const struct assay_plugin_tensor *d, int64_t row, int64_t column);

/* The mode of the call's options; ASSAY_PLUGIN_FAILED for a name there is not. */
int example_find_mode(const struct assay_call *call, enum example_mode *mode);

/* What the mode does at each point; the honest one nothing. */
int example_claim(const struct assay_call *call, struct assay_claim *promise);
int example_before(const struct example_run *run);
int64_t example_rows(const struct example_run *run); /* that are computed */
int64_t example_columns(const struct example_run *run, int64_t row,
                        int64_t column); /* of K, that are summed up */
float example_change(const struct example_run *run, int64_t row, int64_t column,
                     float value); /* what is stored instead of the value */
int example_after(const struct example_run *run);

#endif
