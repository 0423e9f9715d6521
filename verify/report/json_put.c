/* SPDX-License-Identifier: MIT */
#include "verify/report/json_put.h"

#include "verify/report/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_KEY = 64 };

void assay_json_put(struct assay_json_output *output, json_t *object, const char *key,
                    json_t *value)
{
    if (json_object_set_new(object, key, value)) output->is_incomplete = true;
}

void assay_json_append(struct assay_json_output *output, json_t *array, json_t *value)
{
    if (json_array_append_new(array, value)) output->is_incomplete = true;
}

void assay_json_put_flag(struct assay_json_output *output, json_t *object,
                         const char *key, bool value)
{
    assay_json_put(output, object, key, json_boolean(value));
}

void assay_json_put_count(struct assay_json_output *output, json_t *object,
                          const char *key, int64_t value)
{
    assay_json_put(output, object, key, json_integer(value));
}

void assay_json_put_hash(struct assay_json_output *output, json_t *object,
                         const char *key, uint64_t hash)
{
    char text[24];
    snprintf(text, sizeof text, "0x%016" PRIx64, hash);
    assay_json_put_text(output, object, key, text);
}

void assay_json_put_value(struct assay_json_output *output, json_t *object,
                          const char *key, double value)
{
    if (isfinite(value)) assay_json_put(output, object, key, json_real(value));
}

void assay_json_put_real(struct assay_json_output *output, json_t *object,
                         const char *key, double value)
{
    if (isfinite(value)) {
        assay_json_put(output, object, key, json_real(value));
        return;
    }
    char bits_key[MAX_KEY];
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    snprintf(bits_key, sizeof bits_key, "%s_bits", key);
    assay_json_put_hash(output, object, bits_key, bits);
}

static void put_printable(struct assay_json_output *output, json_t *object,
                          const char *key, const char *text, bool is_one_line)
{
    if (!text || !*text) return;
    char *const printable = malloc(strlen(text) + 1);
    if (!printable) {
        output->is_incomplete = true;
        return;
    }
    size_t used = 0;
    while (*text) {
        const size_t length = assay_report_character(text);
        if (length)
            memcpy(printable + used, text, length);
        else
            printable[used] = *text == '\n' && !is_one_line ? '\n' : '?';
        used += length ? length : 1;
        text += length ? length : 1;
    }
    assay_json_put(output, object, key, json_stringn(printable, used));
    free(printable);
}

void assay_json_put_text(struct assay_json_output *output, json_t *object,
                         const char *key, const char *text)
{
    put_printable(output, object, key, text, true);
}

void assay_json_put_lines(struct assay_json_output *output, json_t *object,
                          const char *key, const char *text)
{
    put_printable(output, object, key, text, false);
}

void assay_json_put_exact_text(struct assay_json_output *output, json_t *object,
                               const char *key, const char *text)
{
    put_printable(output, object, key, text, true);
    if (assay_report_is_printable(text)) return;
    const size_t bytes = strlen(text);
    char bytes_key[MAX_KEY];
    char *const digits = malloc(2 * bytes + 1);
    if (!digits) {
        output->is_incomplete = true;
        return;
    }
    for (size_t i = 0; i < bytes; i++)
        snprintf(digits + 2 * i, 3, "%02x", (unsigned)(unsigned char)text[i]);
    snprintf(bytes_key, sizeof bytes_key, "%s_bytes", key);
    assay_json_put(output, object, bytes_key, json_stringn(digits, 2 * bytes));
    free(digits);
}

enum assay_status assay_json_write_line(struct assay_json_output *output, json_t *object)
{
    const bool is_written = !output->is_incomplete &&
                            json_dumpf(object, output->file, JSON_COMPACT) == 0 &&
                            fputc('\n', output->file) != EOF && fflush(output->file) == 0;
    json_decref(object);
    return is_written ? ASSAY_RAN : ASSAY_FAILED;
}
