/* SPDX-License-Identifier: MIT */
/* A line of JSON put together member by member. Members that could not be added (no
 * memory) are noticed once, when the line is written. */
#ifndef ASSAY_VERIFY_REPORT_JSON_PUT_H
#define ASSAY_VERIFY_REPORT_JSON_PUT_H

#include "verify/case/message.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct assay_json_output {
    FILE *file;
    bool is_incomplete;
};

/* Both take the value over. */
void assay_json_put(struct assay_json_output *output, json_t *object, const char *key,
                    json_t *value);
void assay_json_append(struct assay_json_output *output, json_t *array, json_t *value);

void assay_json_put_flag(struct assay_json_output *output, json_t *object,
                         const char *key, bool value);
void assay_json_put_count(struct assay_json_output *output, json_t *object,
                          const char *key, int64_t value);
/* A fact. What is no JSON number is written as "KEY_bits", the double's own. */
void assay_json_put_real(struct assay_json_output *output, json_t *object,
                         const char *key, double value);
/* A courtesy beside bits: absent if it is no JSON number. */
void assay_json_put_value(struct assay_json_output *output, json_t *object,
                          const char *key, double value);
/* "0x0123456789abcdef" */
void assay_json_put_hash(struct assay_json_output *output, json_t *object,
                         const char *key, uint64_t hash);

/* Printable text, a '?' for each byte of what is not; absent if NULL or empty. */
void assay_json_put_text(struct assay_json_output *output, json_t *object,
                         const char *key, const char *text);
/* The same of a text of lines, whose newlines are kept. */
void assay_json_put_lines(struct assay_json_output *output, json_t *object,
                          const char *key, const char *text);
/* The same of a text that repeats something: where it isn't printable, "KEY_bytes" holds
 * its bytes in hexadecimal. */
void assay_json_put_exact_text(struct assay_json_output *output, json_t *object,
                               const char *key, const char *text);

/* Writes the line and flushes, and drops the object: ASSAY_RAN or ASSAY_FAILED. */
enum assay_status assay_json_write_line(struct assay_json_output *output, json_t *object);

#endif
