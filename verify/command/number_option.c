/* SPDX-License-Identifier: MIT */
#include "verify/command/number_option.h"

#include "verify/case/case.h"
#include "verify/case/number.h"
#include "verify/case/text.h"

#include <inttypes.h>

enum assay_status assay_option_count(const char *option, const char *text, uint64_t least,
                                     uint64_t most, uint64_t *count,
                                     struct assay_message *message)
{
    if (assay_number_unsigned(text, count) == ASSAY_NUMBER_VALID && *count >= least &&
        *count <= most)
        return ASSAY_RAN;
    return assay_fail(message, ASSAY_REFUSED,
                      "%s %s is no count; use %" PRIu64 " to %" PRIu64, option,
                      assay_excerpt(text).text, least, most);
}

enum assay_status assay_option_seconds(const char *option, const char *text,
                                       double *seconds, struct assay_message *message)
{
    int64_t value;
    if (assay_number_fraction(text, &value) != ASSAY_NUMBER_VALID || value <= 0)
        return assay_fail(message, ASSAY_REFUSED,
                          "%s %s is no time; use seconds, such as 60 or 0.5", option,
                          assay_excerpt(text).text);
    *seconds = (double)value / (double)ASSAY_FRACTION_UNIT;
    return ASSAY_RAN;
}
