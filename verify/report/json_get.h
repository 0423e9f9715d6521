/* SPDX-License-Identifier: MIT */
/* Members of JSON objects that come from outside. The first one that is missing or wrong
 * is remembered with a sentence; what is read after it is 0 or empty. */
#ifndef ASSAY_VERIFY_REPORT_JSON_GET_H
#define ASSAY_VERIFY_REPORT_JSON_GET_H

#include "verify/check/result.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct assay_json_reader {
    enum assay_status status; /* ASSAY_RAN so far, or ASSAY_REFUSED */
    struct assay_message *message;
    char where[64]; /* "output 2": what the objects belong to */
};

/* Integers are below 2^53, as every reader of JSON can take them. */
#define ASSAY_JSON_MAX_COUNT (INT64_C(1) << 53)

/* Says where the objects read from now on are. */
__attribute__((format(printf, 2, 3))) void assay_json_at(struct assay_json_reader *reader,
                                                         const char *format, ...);

/* Remembers that member @key of @object "has to be ...". */
__attribute__((format(printf, 4, 5))) void
assay_json_refuse(struct assay_json_reader *reader, const json_t *object, const char *key,
                  const char *format, ...);

bool assay_json_has(const json_t *object, const char *key);

/* The members have to be there, but for a flag, whose absence is false. */
bool assay_json_flag(struct assay_json_reader *reader, const json_t *object,
                     const char *key);
int64_t assay_json_count(struct assay_json_reader *reader, const json_t *object,
                         const char *key, int64_t maximum);
double assay_json_real(struct assay_json_reader *reader, const json_t *object,
                       const char *key);
/* "0x3fa0" of that many digits. */
uint64_t assay_json_bits(struct assay_json_reader *reader, const json_t *object,
                         const char *key, int digits);
/* Not empty; belongs to @object; "" if it is wrong. */
const char *assay_json_string(struct assay_json_reader *reader, const json_t *object,
                              const char *key);
/* An array of objects; NULL if it is wrong. */
const json_t *assay_json_objects(struct assay_json_reader *reader, const json_t *object,
                                 const char *key, size_t maximum);

/* What the names in members "status" and "verdict" mean. */
enum assay_status assay_json_status(struct assay_json_reader *reader,
                                    const json_t *object);
enum assay_verdict assay_json_verdict(struct assay_json_reader *reader,
                                      const json_t *object);

/* Copies the string to @text of @size bytes; empty where it is absent. */
void assay_json_text(struct assay_json_reader *reader, const json_t *object,
                     const char *key, char *text, size_t size);
/* The same of what assay_json_put_exact_text wrote. */
void assay_json_exact_text(struct assay_json_reader *reader, const json_t *object,
                           const char *key, char *text, size_t size);

#endif
