/* SPDX-License-Identifier: MIT */
#include "verify/command/limits.h"

#include "verify/case/number.h"
#include "verify/case/text.h"
#include "verify/command/number_option.h"

#include <string.h>

enum { KEY_TIMEOUT = 768, KEY_WARMUP_TIMEOUT, KEY_MEMORY_LIMIT, KEY_FRESH };

static const struct argp_option options[] = {
    { "timeout", KEY_TIMEOUT, "S", 0,
      "seconds a plugin or program may take for a case (60)", 0 },
    { "warmup-timeout", KEY_WARMUP_TIMEOUT, "S", 0,
      "seconds to the first answer of a program's process instead (300)", 0 },
    { "memory-limit", KEY_MEMORY_LIMIT, "SIZE", 0,
      "memory it may take, as 512M or 4G (three quarters of the machine's)", 0 },
    { "fresh", KEY_FRESH, NULL, 0, "start a new process of it for every case", 0 },
    { 0 },
};

struct assay_limits assay_limits_default(void)
{
    return (struct assay_limits){ .backend = assay_backend_default_limits,
                                  .status = ASSAY_RAN };
}

static enum assay_status parse_memory(struct assay_limits *limits, const char *text)
{
    static const char units[] = "KMG";
    char digits[32] = "";
    const size_t length = strlen(text);
    const char *const unit = length > 1 ? strchr(units, text[length - 1]) : NULL;
    const size_t count = unit ? length - 1 : length;
    uint64_t value = 0;
    if (count < sizeof(digits)) memcpy(digits, text, count);
    const int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    if (assay_number_unsigned(digits, &value) != ASSAY_NUMBER_VALID || value == 0 ||
        value > (uint64_t)INT64_MAX >> shift)
        return assay_fail(&limits->message, ASSAY_REFUSED,
                          "--memory-limit %s is no size; use bytes, or K, M or G of "
                          "them, such as 512M",
                          assay_excerpt(text).text);
    limits->backend.memory_bytes = (int64_t)(value << shift);
    return ASSAY_RAN;
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct assay_limits *const limits = state->input;
    struct assay_backend_limits *const backend = &limits->backend;
    if (key < KEY_TIMEOUT || key > KEY_FRESH) return ARGP_ERR_UNKNOWN;
    if (limits->status != ASSAY_RAN) return 0;
    switch (key) {
    case KEY_TIMEOUT:
        limits->status = assay_option_seconds("--timeout", argument, &backend->seconds,
                                              &limits->message);
        break;
    case KEY_WARMUP_TIMEOUT:
        limits->status = assay_option_seconds("--warmup-timeout", argument,
                                              &backend->warmup_seconds, &limits->message);
        break;
    case KEY_MEMORY_LIMIT: limits->status = parse_memory(limits, argument); break;
    default: backend->is_fresh = true;
    }
    return 0;
}

const struct argp *assay_limits_argp(void)
{
    static const struct argp argp = { .options = options, .parser = parse_option };
    return &argp;
}
