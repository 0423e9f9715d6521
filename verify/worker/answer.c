/* SPDX-License-Identifier: MIT */
#include "verify/worker/answer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What follows @word in the text; NULL when it begins otherwise. */
static const char *after(const char *text, const char *word)
{
    const size_t length = strlen(word);
    if (strncmp(text, word, length) != 0) return NULL;
    if (text[length] == '\0') return text + length;
    return text[length] == ' ' ? text + length + 1 : NULL;
}

/* "seconds=0.0012", or nothing. */
static bool read_seconds(const char *text, double *seconds)
{
    static const char key[] = "seconds=";
    char *end;
    *seconds = 0;
    if (!*text) return true;
    if (strncmp(text, key, sizeof(key) - 1) != 0) return false;
    *seconds = strtod(text + sizeof(key) - 1, &end);
    return end != text + sizeof(key) - 1 && !*end && isfinite(*seconds) && *seconds >= 0;
}

bool assay_answer_read(const char *text, struct assay_answer *answer)
{
    static const struct {
        const char *word;
        enum assay_status status;
    } rows[] = { { "unsupported", ASSAY_UNSUPPORTED },
                 { "failed", ASSAY_FAILED },
                 { "out of memory", ASSAY_OUT_OF_MEMORY } };
    const char *const rest = after(text, "ok");
    *answer = (struct assay_answer){ .sentence = text + strlen(text) };
    if (rest) return read_seconds(rest, &answer->seconds);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *const sentence = after(text, rows[i].word);
        if (!sentence) continue;
        answer->status = rows[i].status;
        answer->sentence = sentence;
        return true;
    }
    return false;
}
