/* SPDX-License-Identifier: MIT */
/* The verdicts' names, and the end of a result. */
#include "verify/check/result.h"

#include <stdlib.h>

const struct assay_verdict_row assay_verdicts[ASSAY_VERDICT_COUNT] = {
    [ASSAY_NOT_JUDGED] = { "not-judged", "nothing was compared" },
    [ASSAY_EQUAL] = { "equal", "all bits of all defined elements are the reference's, "
                               "NaN and the sign of zero included" },
    [ASSAY_EXPLAINED] = { "explained", "all bits are those of another named numerics" },
    [ASSAY_BOUNDED] = { "bounded", "every element is within its proven bound, NaN and "
                                   "infinities in the same places" },
    [ASSAY_OUTSIDE] = { "outside",
                        "an element is beyond its proven bound, or not exact where "
                        "exact data leave one answer" },
    [ASSAY_CONTRADICTION] = { "contradiction", "the model itself is beyond the oracle's "
                                               "bound, or not exact: a defect of assay" },
};

void assay_result_close(struct assay_result *result)
{
    free(result->output);
    result->output = NULL;
    result->output_count = 0;
}
