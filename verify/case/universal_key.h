/* SPDX-License-Identifier: MIT */
/* The keys that a case of every operation understands. */
#ifndef ASSAY_VERIFY_CASE_UNIVERSAL_KEY_H
#define ASSAY_VERIFY_CASE_UNIVERSAL_KEY_H

#include "verify/case/case.h"
#include "verify/case/text.h"

enum { ASSAY_UNIVERSAL_KEYS = 5 };

struct assay_universal_key {
    const char *name, *meaning;
    enum assay_status (*parse)(const char *value, struct assay_case *,
                               struct assay_message *);
    /* Whether the canonical line leaves the key out. */
    bool (*is_omitted)(const struct assay_case *);
    void (*format)(const struct assay_case *, struct assay_text *);
};

/* In canonical order, closed by a NULL name. */
extern const struct assay_universal_key assay_universal_keys[ASSAY_UNIVERSAL_KEYS + 1];

#endif
