/* SPDX-License-Identifier: MIT */
#include "fuzz/campaign/negative.h"

#include "verify/case/text.h"
#include "verify/check/inputs.h"
#include "verify/operation/numerics.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int assay_negative_count(const char *operation)
{
    int count = 0;
    for (const struct assay_negative *row = assay_negatives; row->operation; row++)
        count += strcmp(row->operation, operation) == 0;
    return count;
}

const struct assay_negative *assay_negative_at(const char *operation, int index)
{
    const struct assay_negative *row = assay_negatives;
    while (strcmp(row->operation, operation) != 0 || index-- > 0)
        row++;
    return row;
}

/* Bytes of the word's key, "k" of "k=16". */
static size_t key_length(const char *word)
{
    return strcspn(word, "= ");
}

/* Whether the change gives the key of @word. */
static bool gives_key(const char *change, const char *word)
{
    const size_t length = key_length(word);
    while (*change) {
        if (key_length(change) == length && strncmp(change, word, length) == 0)
            return true;
        change += strcspn(change, " ");
        change += strspn(change, " ");
    }
    return false;
}

static bool is_left_out(const char *word)
{
    return strncmp(word, "unsafe=", 7) == 0 || strncmp(word, "as=", 3) == 0 ||
           strncmp(word, "bits=", 5) == 0;
}

/* One word of the change, "k=@k+8", with values put in. */
static void add_word(struct assay_text *line, const char *word, size_t length,
                     const struct assay_case *the_case)
{
    if (length >= 2 && word[length - 1] == '-' && word[length - 2] == '=') return;
    assay_text_add(line, " ");
    for (const char *at = word; at < word + length;) {
        char key[64], *rest;
        if (*at != '@') {
            assay_text_add(line, "%c", *at++);
            continue;
        }
        const size_t letters = strcspn(at + 1, "+");
        assert(letters < sizeof(key) && at[letters + 1] == '+');
        memcpy(key, at + 1, letters);
        key[letters] = '\0';
        const int64_t more = strtoll(at + letters + 2, &rest, 10);
        assay_text_add(line, "%" PRId64, assay_case_value(the_case, key) + more);
        at = rest;
    }
}

void assay_negative_apply(const struct assay_negative *negative,
                          const struct assay_case *the_case, char *line)
{
    char kept[ASSAY_MAX_CASE_LINE];
    struct assay_text text = assay_text_open(line, ASSAY_MAX_CASE_LINE);
    char *rest = kept;
    assay_case_format(the_case, kept, sizeof(kept));
    assay_text_add(&text, "%s", strsep(&rest, " "));
    for (char *word; (word = strsep(&rest, " "));)
        if (!is_left_out(word) && !gives_key(negative->change, word))
            assay_text_add(&text, " %s", word);
    for (const char *word = negative->change; *word;) {
        const size_t length = strcspn(word, " ");
        add_word(&text, word, length, the_case);
        word += length + strspn(word + length, " ");
    }
    assert(assay_text_fits(&text));
}

enum assay_status assay_negative_try(const char *line, struct assay_message *message)
{
    struct assay_case the_case;
    union assay_problem_storage problem;
    union assay_numerics_storage numerics;
    struct assay_tensors tensors;
    struct assay_buffers buffers = { .block = NULL };
    enum assay_status status = assay_case_parse(line, &the_case, message);
    if (status != ASSAY_RAN) return status;
    status = the_case.operation->bind(&the_case, &problem, message);
    if (status == ASSAY_RAN)
        status = assay_numerics_parse(the_case.operation, &problem, the_case.numerics,
                                      &numerics, message);
    if (status != ASSAY_RAN) return status;
    status = assay_inputs_open(&the_case, NULL, 0, &problem, &tensors, &buffers, message);
    assay_buffers_close(&buffers);
    return status;
}
