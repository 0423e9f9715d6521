/* SPDX-License-Identifier: MIT */
#include "verify/report/json_get.h"

#include "verify/case/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_KEY = 64 };

void assay_json_at(struct assay_json_reader *reader, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reader->where, sizeof reader->where, format, arguments);
    va_end(arguments);
}

static void describe(const json_t *value, struct assay_text *text)
{
    if (json_is_string(value))
        assay_text_add(text, "'%s'", assay_excerpt(json_string_value(value)).text);
    else if (json_is_integer(value))
        assay_text_add(text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        assay_text_add(text, "%g", json_real_value(value));
    else if (json_is_boolean(value))
        assay_text_add(text, json_is_true(value) ? "true" : "false");
    else
        assay_text_add(text, "%s",
                       !value                  ? "missing"
                       : json_is_array(value)  ? "an array"
                       : json_is_object(value) ? "an object"
                                               : "null");
}

void assay_json_refuse(struct assay_json_reader *reader, const json_t *object,
                       const char *key, const char *format, ...)
{
    if (reader->status != ASSAY_RAN) return;
    char found[128], right[128];
    struct assay_text text = assay_text_open(found, sizeof found);
    describe(json_object_get(object, key), &text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(right, sizeof right, format, arguments);
    va_end(arguments);
    reader->status = assay_fail(reader->message, ASSAY_REFUSED,
                                "member '%s' of %s is %s; it has to be %s", key,
                                reader->where, found, right);
}

bool assay_json_has(const json_t *object, const char *key)
{
    return json_object_get(object, key) != NULL;
}

bool assay_json_flag(struct assay_json_reader *reader, const json_t *object,
                     const char *key)
{
    const json_t *const value = json_object_get(object, key);
    if (value && !json_is_boolean(value))
        assay_json_refuse(reader, object, key, "true or false");
    return json_is_true(value);
}

int64_t assay_json_count(struct assay_json_reader *reader, const json_t *object,
                         const char *key, int64_t maximum)
{
    const json_t *const value = json_object_get(object, key);
    const int64_t count = json_integer_value(value);
    if (json_is_integer(value) && count >= 0 && count <= maximum) return count;
    assay_json_refuse(reader, object, key, "a whole number from 0 to %" PRId64, maximum);
    return 0;
}

static bool is_bits(const char *text, int digits)
{
    return text && strncmp(text, "0x", 2) == 0 && strlen(text + 2) == (size_t)digits &&
           strspn(text + 2, "0123456789abcdef") == (size_t)digits;
}

uint64_t assay_json_bits(struct assay_json_reader *reader, const json_t *object,
                         const char *key, int digits)
{
    const char *const text = json_string_value(json_object_get(object, key));
    if (is_bits(text, digits)) return strtoull(text, NULL, 16);
    assay_json_refuse(reader, object, key, "0x and %d hexadecimal digits", digits);
    return 0;
}

double assay_json_real(struct assay_json_reader *reader, const json_t *object,
                       const char *key)
{
    const json_t *const value = json_object_get(object, key);
    char bits_key[MAX_KEY];
    if (json_is_number(value)) return json_number_value(value);
    snprintf(bits_key, sizeof bits_key, "%s_bits", key);
    if (value || !assay_json_has(object, bits_key)) {
        assay_json_refuse(reader, object, key, "a number");
        return 0;
    }
    const uint64_t bits = assay_json_bits(reader, object, bits_key, 16);
    double real;
    memcpy(&real, &bits, sizeof real);
    return real;
}

const char *assay_json_string(struct assay_json_reader *reader, const json_t *object,
                              const char *key)
{
    const char *const text = json_string_value(json_object_get(object, key));
    if (text && *text) return text;
    assay_json_refuse(reader, object, key, "a string that is not empty");
    return "";
}

const json_t *assay_json_objects(struct assay_json_reader *reader, const json_t *object,
                                 const char *key, size_t maximum)
{
    const json_t *const array = json_object_get(object, key);
    bool is_right = json_is_array(array) && json_array_size(array) <= maximum;
    for (size_t i = 0; is_right && i < json_array_size(array); i++)
        is_right = json_is_object(json_array_get(array, i));
    if (is_right) return array;
    assay_json_refuse(reader, object, key, "an array of at most %zu objects", maximum);
    return NULL;
}

void assay_json_text(struct assay_json_reader *reader, const json_t *object,
                     const char *key, char *text, size_t size)
{
    const json_t *const value = json_object_get(object, key);
    const char *const string = json_string_value(value);
    *text = '\0';
    if (string && strlen(string) < size)
        strcpy(text, string);
    else if (value)
        assay_json_refuse(reader, object, key, "a string of at most %zu bytes", size - 1);
}

static unsigned digit_of(char digit)
{
    return (unsigned)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

void assay_json_exact_text(struct assay_json_reader *reader, const json_t *object,
                           const char *key, char *text, size_t size)
{
    char bytes_key[MAX_KEY];
    snprintf(bytes_key, sizeof bytes_key, "%s_bytes", key);
    assay_json_text(reader, object, key, text, size);
    if (!assay_json_has(object, bytes_key)) return;

    const char *const digits = assay_json_string(reader, object, bytes_key);
    const size_t bytes = strlen(digits) / 2;
    bool is_right = bytes < size && strlen(digits) % 2 == 0 &&
                    digits[strspn(digits, "0123456789abcdef")] == '\0';
    for (size_t i = 0; is_right && i < bytes; i++) {
        const unsigned byte = digit_of(digits[2 * i]) << 4 | digit_of(digits[2 * i + 1]);
        text[i] = (char)byte;
        is_right = byte != 0;
    }
    text[is_right ? bytes : 0] = '\0';
    if (!is_right)
        assay_json_refuse(reader, object, bytes_key,
                          "hexadecimal digits, two a byte, of at most %zu bytes",
                          size - 1);
}

enum assay_status assay_json_status(struct assay_json_reader *reader,
                                    const json_t *object)
{
    const char *const name = assay_json_string(reader, object, "status");
    for (int i = 0; i < ASSAY_STATUS_COUNT; i++)
        if (strcmp(name, assay_status_name((enum assay_status)i)) == 0)
            return (enum assay_status)i;
    assay_json_refuse(reader, object, "status", "the name of a status");
    return ASSAY_FAILED;
}

enum assay_verdict assay_json_verdict(struct assay_json_reader *reader,
                                      const json_t *object)
{
    const char *const name = assay_json_string(reader, object, "verdict");
    for (int i = 0; i < ASSAY_VERDICT_COUNT; i++)
        if (strcmp(name, assay_verdicts[i].name) == 0) return (enum assay_verdict)i;
    assay_json_refuse(reader, object, "verdict", "the name of a verdict");
    return ASSAY_NOT_JUDGED;
}
