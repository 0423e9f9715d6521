/* SPDX-License-Identifier: MIT */
/* Files that are wrong: each must be refused with one sentence that says why. */
#include "tests/harness.h"
#include "verify/data/safetensors.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

enum { MAX_CONTENT = 16384 };

struct hostile {
    const char *what;
    const char *header; /* JSON; NULL: @raw is the whole file */
    int data_bytes;     /* zeros behind the header */
    const char *raw;
    size_t raw_bytes;
    const char *word;   /* the sentence must contain it */
    const char *tensor; /* and this name, if there is one */
};

#define RAW(text)  .raw = text, .raw_bytes = sizeof(text) - 1
#define T(text)    .header = "{\"t\":{" text "}}", .tensor = "'t'"
#define GOOD_DTYPE "\"dtype\":\"F32\""
#define AT(b, e)   "\"data_offsets\":[" #b "," #e "]"
#define TENSOR(name, shape, b, e)                                                        \
  "\"" name "\":{" GOOD_DTYPE ",\"shape\":" shape "," AT(b, e) "}"

static const struct hostile table[] = {
    { "empty file", RAW(""), .word = "empty" },
    { "one byte", RAW("\0"), .word = "truncated" },
    { "seven bytes", RAW("\2\0\0\0\0\0\0"), .word = "truncated" },
    { "header longer than file", RAW("\3\0\0\0\0\0\0\0{}"), .word = "more than the 2" },
    { "header of 100,000,000 missing", RAW("\0\xe1\xf5\5\0\0\0\0{}"),
      .word = "truncated" },
    { "header above limit", RAW("\1\xe1\xf5\5\0\0\0\0{}"), .word = "limit of 100000000" },
    { "header of 2^32", RAW("\0\0\0\0\1\0\0\0{}"), .word = "limit" },
    { "header of 2^63", RAW("\0\0\0\0\0\0\0\x80{}"), .word = "limit" },
    { "header of 2^64 - 1", RAW("\xff\xff\xff\xff\xff\xff\xff\xff{}"), .word = "limit" },
    { "zip archive", RAW("PK\3\4\24\0\0\0\0\0\0\0"), .word = "tools/import_npz.py" },
    { "zip archive of PyTorch", RAW("PK\3\4\24\0\0\0\0\0\0\0"), .word = ".pt" },
    { "empty zip archive", RAW("PK\5\6\0\0\0\0\0\0\0\0"), .word = "zip" },
    { "NumPy file", RAW("\x93NUMPY\1\0v\0{'descr'"), .word = ".npy" },
    { "zstd without .zst", RAW("\x28\xb5\x2f\xfd\4\0\1\0\0"),
      .word = "must end in .zst" },
    { "text file", RAW("# notes on safetensors\n"), .word = "not a safetensors file" },
    { "no header", RAW("\0\0\0\0\0\0\0\0"), .word = "'{'" },

    { "array", .header = "[]", .word = "'{'" },
    { "leading space", .header = " {}", .word = "'{'" },
    { "header is spaces", .header = "        ", .word = "'{'" },
    { "unfinished object", .header = "{", .word = "JSON" },
    { "text behind the object", .header = "{} {}", .word = "JSON" },
    { "zero byte behind the object", RAW("\3\0\0\0\0\0\0\0{}\0"), .word = "JSON" },
    { "single quotes", .header = "{'t':1}", .word = "JSON" },
    { "invalid UTF-8 name", .header = "{\"\xff\":{}}", .word = "UTF-8" },
    { "overlong UTF-8 name", .header = "{\"\xc0\xaf\":{}}", .word = "UTF-8" },
    { "lone surrogate", .header = "{\"\\ud800\":{}}", .word = "JSON" },
    { "zero byte in name", .header = "{\"a\\u0000b\":{}}", .word = "JSON" },
    { "line break in name", .header = "{\"a\nb\":{}}", .word = "JSON" },
    { "NaN", .header = "{\"t\":NaN}", .word = "JSON" },
    { "real overflow", .header = "{\"t\":1e999}", .word = "JSON" },
    { "duplicate tensor",
      .header = "{" TENSOR("t", "[]", 0, 4) "," TENSOR("t", "[]", 4, 8) "}",
      .data_bytes = 8, .word = "duplicate" },
    { "duplicate key in tensor",
      .header = "{\"t\":{" GOOD_DTYPE "," GOOD_DTYPE ",\"shape\":[]," AT(0, 4) "}}",
      .data_bytes = 4, .word = "duplicate" },
    { "duplicate metadata", .header = "{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}",
      .word = "duplicate" },

    { "tensor is a number", .header = "{\"t\":1}", .word = "object", .tensor = "'t'" },
    { "tensor is null", .header = "{\"t\":null}", .word = "object", .tensor = "'t'" },
    { "tensor is an array", .header = "{\"t\":[]}", .word = "object", .tensor = "'t'" },
    { "tensor is empty", .header = "{\"t\":{}}", .word = "no dtype", .tensor = "'t'" },
    { "no dtype", T("\"shape\":[]," AT(0, 4)), .data_bytes = 4, .word = "no dtype" },
    { "no shape", T(GOOD_DTYPE "," AT(0, 4)), .data_bytes = 4, .word = "no shape" },
    { "no offsets", T(GOOD_DTYPE ",\"shape\":[]"), .word = "no data_offsets" },
    { "extra key", T(GOOD_DTYPE ",\"shape\":[]," AT(0, 4) ",\"stride\":[1]"),
      .data_bytes = 4, .word = "'stride'" },
    { "dtype F64", T("\"dtype\":\"F64\",\"shape\":[]," AT(0, 8)), .data_bytes = 8,
      .word = "known are F8_E4M3, F8_E5M2, F8_E8M0, BF16, F16, F32, U8, I32" },
    { "dtype in lower case", T("\"dtype\":\"f32\",\"shape\":[]," AT(0, 4)),
      .data_bytes = 4, .word = "unknown dtype 'f32'" },
    { "empty dtype", T("\"dtype\":\"\",\"shape\":[]," AT(0, 4)), .data_bytes = 4,
      .word = "unknown dtype" },
    { "dtype is a number", T("\"dtype\":32,\"shape\":[]," AT(0, 4)), .data_bytes = 4,
      .word = "not a string" },
    { "shape is a number", T(GOOD_DTYPE ",\"shape\":1," AT(0, 4)), .data_bytes = 4,
      .word = "shape" },
    { "shape is null", T(GOOD_DTYPE ",\"shape\":null," AT(0, 4)), .data_bytes = 4,
      .word = "shape" },
    { "negative size", T(GOOD_DTYPE ",\"shape\":[1,-1]," AT(0, 4)), .data_bytes = 4,
      .word = "shape[1]" },
    { "two negative sizes", T(GOOD_DTYPE ",\"shape\":[-1,-1]," AT(0, 4)), .data_bytes = 4,
      .word = "shape[0]" },
    { "real size", T(GOOD_DTYPE ",\"shape\":[1.0]," AT(0, 4)), .data_bytes = 4,
      .word = "whole number" },
    { "size is a string", T(GOOD_DTYPE ",\"shape\":[\"1\"]," AT(0, 4)), .data_bytes = 4,
      .word = "whole number" },
    { "size is true", T(GOOD_DTYPE ",\"shape\":[true]," AT(0, 4)), .data_bytes = 4,
      .word = "whole number" },
    { "size of 2^63", .header = "{\"t\":{\"shape\":[9223372036854775808]}}",
      .word = "JSON" },
    { "rank 6", T(GOOD_DTYPE ",\"shape\":[1,1,1,1,1,1]," AT(0, 4)), .data_bytes = 4,
      .word = "rank 6" },
    { "product of sizes overflows",
      T(GOOD_DTYPE ",\"shape\":[4294967296,4294967296,4294967296]," AT(0, 0)),
      .word = "overflows" },
    { "product wraps to the right size",
      T(GOOD_DTYPE ",\"shape\":[4294967297,4294967295,1]," AT(0, 4)), .data_bytes = 4,
      .word = "overflows" },
    { "bytes overflow", T(GOOD_DTYPE ",\"shape\":[4611686018427387904]," AT(0, 0)),
      .word = "overflows" },
    { "overflow before a zero size",
      T(GOOD_DTYPE ",\"shape\":[9223372036854775807,2,0]," AT(0, 0)),
      .word = "overflows" },

    { "offsets are a number", T(GOOD_DTYPE ",\"shape\":[],\"data_offsets\":0"),
      .data_bytes = 4, .word = "two whole numbers" },
    { "one offset", T(GOOD_DTYPE ",\"shape\":[],\"data_offsets\":[4]"), .data_bytes = 4,
      .word = "two whole numbers" },
    { "three offsets", T(GOOD_DTYPE ",\"shape\":[],\"data_offsets\":[0,4,8]"),
      .data_bytes = 4, .word = "two whole numbers" },
    { "negative begin", T(GOOD_DTYPE ",\"shape\":[]," AT(-4, 0)), .data_bytes = 4,
      .word = "two whole numbers" },
    { "real offsets", T(GOOD_DTYPE ",\"shape\":[]," AT(0, 4.0)), .data_bytes = 4,
      .word = "two whole numbers" },
    { "begin behind end", T(GOOD_DTYPE ",\"shape\":[0]," AT(4, 0)), .data_bytes = 4,
      .word = "ends before" },
    { "end behind the file", T(GOOD_DTYPE ",\"shape\":[2]," AT(0, 8)), .data_bytes = 7,
      .word = "only 7 bytes" },
    { "end of 2^63 - 1", T(GOOD_DTYPE ",\"shape\":[1]," AT(0, 9223372036854775807)),
      .data_bytes = 4, .word = "truncated" },
    { "span shorter than shape", T(GOOD_DTYPE ",\"shape\":[2]," AT(0, 4)),
      .data_bytes = 4, .word = "take 8" },
    { "span longer than shape", T(GOOD_DTYPE ",\"shape\":[1]," AT(0, 8)), .data_bytes = 8,
      .word = "span 8 bytes" },
    { "bytes for a zero size", T(GOOD_DTYPE ",\"shape\":[0]," AT(0, 4)), .data_bytes = 4,
      .word = "take 0" },
    { "overlap", .header = "{" TENSOR("s", "[2]", 0, 8) "," TENSOR("t", "[2]", 4, 12) "}",
      .data_bytes = 12, .word = "overlap", .tensor = "'t'" },
    { "same place twice",
      .header = "{" TENSOR("s", "[1]", 0, 4) "," TENSOR("t", "[1]", 0, 4) "}",
      .data_bytes = 4, .word = "overlap", .tensor = "'t'" },
    { "zero-size tensor inside another",
      .header = "{" TENSOR("s", "[2]", 0, 8) "," TENSOR("t", "[0]", 4, 4) "}",
      .data_bytes = 8, .word = "overlap", .tensor = "'t'" },
    { "gap before the first tensor", T(GOOD_DTYPE ",\"shape\":[]," AT(4, 8)),
      .data_bytes = 8, .word = "gap" },
    { "gap between tensors",
      .header = "{" TENSOR("s", "[1]", 0, 4) "," TENSOR("t", "[1]", 8, 12) "}",
      .data_bytes = 12, .word = "gap", .tensor = "'t'" },
    { "one trailing byte", .header = "{" TENSOR("t", "[]", 0, 4) "}", .data_bytes = 5,
      .word = "1 trailing" },
    { "data without tensors", .header = "{}", .data_bytes = 3, .word = "3 trailing" },

    { "metadata is a string", .header = "{\"__metadata__\":\"x\"}",
      .word = "object of strings" },
    { "metadata is null", .header = "{\"__metadata__\":null}",
      .word = "object of strings" },
    { "metadata holds a number", .header = "{\"__metadata__\":{\"seed\":1}}",
      .word = "'seed'" },
    { "metadata holds an object", .header = "{\"__metadata__\":{\"m\":{}}}",
      .word = "strings only" },
    { "metadata holds null", .header = "{\"__metadata__\":{\"m\":null}}",
      .word = "strings only" },
    { 0 },
};

static size_t build(const struct hostile *row, unsigned char *content)
{
    if (!row->header) {
        memcpy(content, row->raw, row->raw_bytes);
        return row->raw_bytes;
    }
    const uint64_t length = strlen(row->header), stored = htole64(length);
    memcpy(content, &stored, 8);
    memcpy(content + 8, row->header, length);
    memset(content + 8 + length, 0, (size_t)row->data_bytes);
    return 8 + length + (size_t)row->data_bytes;
}

static void check_refused(const struct hostile *row, const void *content, size_t bytes)
{
    struct assay_safetensors file;
    struct assay_message message = { "" };
    const enum assay_status status =
        assay_safetensors_parse(content, bytes, "x.safetensors", &file, &message);
    ck_assert_msg(status == ASSAY_REFUSED, "%s: status %d", row->what, (int)status);
    const char *const text = message.text;
    ck_assert_msg(strncmp(text, "x.safetensors: ", 15) == 0, "%s: %s", row->what, text);
    ck_assert_msg(strstr(text, row->word) != NULL, "%s: no '%s' in: %s", row->what,
                  row->word, text);
    if (row->tensor)
        ck_assert_msg(strstr(text, row->tensor) != NULL, "%s: %s", row->what, text);
    for (const char *c = text; *c; c++)
        ck_assert_msg((unsigned char)*c >= ' ' && *c != 0x7f, "%s: %s", row->what, text);
    ck_assert_msg(file.memory == NULL && file.count == 0, "%s: kept memory", row->what);
}

START_TEST(every_hostile_file_is_refused_with_its_reason)
{
    static unsigned char content[MAX_CONTENT];
    int rows = 0;
    for (const struct hostile *row = table; row->what; row++, rows++)
        check_refused(row, content, build(row, content));
    ck_assert_int_ge(rows, 45);
}
END_TEST

START_TEST(deep_nesting_is_refused)
{
    static char header[MAX_CONTENT];
    strcpy(header, "{\"t\":");
    for (int i = 0; i < 5000; i++)
        strcat(header, "[");
    static unsigned char content[MAX_CONTENT];
    const struct hostile row = { "nesting", .header = header, .word = "depth" };
    check_refused(&row, content, build(&row, content));
}
END_TEST

START_TEST(control_bytes_of_a_name_do_not_reach_the_terminal)
{
    static unsigned char content[MAX_CONTENT];
    const struct hostile row = { "escape", .word = "no dtype",
                                 .header = "{\"\\u001b[31m\\nred\\u007f\":{}}",
                                 .tensor = "[31m" };
    check_refused(&row, content, build(&row, content));
}
END_TEST

START_TEST(a_long_name_does_not_push_the_reason_out)
{
    static char header[MAX_CONTENT], name[5001];
    memset(name, 'n', sizeof name - 1);
    snprintf(header, sizeof header,
             "{\"%s\":{\"dtype\":\"F99\",\"shape\":[],\"data_offsets\":[0,4]}}", name);
    static unsigned char content[MAX_CONTENT];
    const struct hostile row = { "long name", .header = header, .word = "known are" };
    check_refused(&row, content, build(&row, content));
}
END_TEST

START_TEST(the_rows_become_good_files_when_mended)
{
    static const char *const good[] = {
        "{}",
        "{} \n\t ",
        "{\"__metadata__\":{}}",
        "{\"__metadata__\":{\"a\":\"1\",\"b\":\"\"}}",
        "{" TENSOR("t", "[]", 0, 4) "}",
        "{" TENSOR("t", "[1,1,1,1,1]", 0, 4) "}",
        "{" TENSOR("t", "[0]", 0, 0) "}",
        "{" TENSOR("t", "[1]", 4, 8) "," TENSOR("s", "[1]", 0, 4) "}",
        "{" TENSOR("t", "[0,7]", 4, 4) "," TENSOR("s", "[1]", 0, 4) "}",
    };
    static const int data_bytes[] = { 0, 0, 0, 0, 4, 4, 0, 8, 4 };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        static unsigned char content[MAX_CONTENT];
        const struct hostile row = { .header = good[i], .data_bytes = data_bytes[i] };
        struct assay_safetensors file;
        struct assay_message message = { "" };
        const enum assay_status status =
            assay_safetensors_parse(content, build(&row, content), "x", &file, &message);
        ck_assert_msg(status == ASSAY_RAN, "%s: %s", good[i], message.text);
        assay_safetensors_close(&file);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_hostile_file_is_refused_with_its_reason,
        deep_nesting_is_refused,
        control_bytes_of_a_name_do_not_reach_the_terminal,
        a_long_name_does_not_push_the_reason_out,
        the_rows_become_good_files_when_mended,
        NULL,
    };
    return run_tests("safetensors_hostile", tests);
}
