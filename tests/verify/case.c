/* SPDX-License-Identifier: MIT */
/* Case lines: what is accepted, what is refused and how, and the canonical form against a
 * second writer. The operations are the test's own. */
#include "verify/case/case.h"

#include "tests/harness.h"
#include "verify/operation/operation.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct assay_choice recipes[] = {
    { "1d1d", 4, "" }, { "1d2d", 0, "" }, { "tensor", -7, "" }, { 0 }
};
static const struct assay_choice formats[] = { { "bf16", 1, "" },
                                               { "f32", 2, "" },
                                               { 0 } };

enum { M, N, K, RECIPE, OUT, OFFSET, PARAMETERS };
static const struct assay_parameter gemm_parameters[] = {
    { .name = "m", .minimum = 1, .maximum = 65536, .is_required = true },
    { .name = "n", .minimum = 0, .maximum = 4096, .is_required = true },
    { .name = "k", .minimum = 0, .maximum = 1 << 20, .default_value = 128 },
    { .name = "recipe", .choices = recipes, .default_value = 0 },
    { .name = "out", .choices = formats, .is_required = true },
    { .name = "offset", .minimum = INT64_MIN, .maximum = INT64_MAX, .default_value = -3 },
    { 0 },
};
static const struct assay_operation gemm = { .name = "probe_gemm",
                                             .parameters = gemm_parameters };

static const struct assay_parameter no_parameters[] = { { 0 } };
static const struct assay_operation idle = { .name = "probe_idle",
                                             .parameters = no_parameters };

static struct assay_parameter wide_parameters[ASSAY_MAX_PARAMETERS + 1];
static const struct assay_operation wide = { .name = "probe_wide",
                                             .parameters = wide_parameters };

const struct assay_operation *const assay_operations[] = { &gemm, &idle, &wide, NULL };

const struct assay_operation *assay_operation_find(const char *name)
{
    for (int i = 0; assay_operations[i]; i++)
        if (strcmp(assay_operations[i]->name, name) == 0) return assay_operations[i];
    return NULL;
}

static struct assay_case parsed(const char *line)
{
    struct assay_case the_case;
    struct assay_message message = { "" };
    ck_assert_msg(assay_case_parse(line, &the_case, &message) == ASSAY_RAN, "%s",
                  message.text);
    return the_case;
}

static void assert_canonical(const char *line, const char *canonical)
{
    char text[ASSAY_MAX_CASE_LINE];
    const struct assay_case the_case = parsed(line);
    assay_case_format(&the_case, text, sizeof(text));
    ck_assert_str_eq(text, canonical);
}

START_TEST(every_key_reaches_its_field)
{
    const struct assay_case the_case =
        parsed("probe_gemm m=7 n=0 k=1048576 recipe=tensor out=f32 "
               "offset=-9223372036854775808 data=ties seed=0xFFFFFFFFFFFFFFFF "
               "as=deepgemm-1d2d,promote_k=64 unsafe=1 bits=a.0.3:7F,sfa:3f800000");
    ck_assert_ptr_eq(the_case.operation, &gemm);
    ck_assert_int_eq(the_case.value[M], 7);
    ck_assert_int_eq(the_case.value[N], 0);
    ck_assert_int_eq(assay_case_value(&the_case, "k"), 1 << 20);
    ck_assert_int_eq(assay_case_value(&the_case, "recipe"), -7);
    ck_assert_int_eq(assay_case_value(&the_case, "out"), 2);
    ck_assert(assay_case_value(&the_case, "offset") == INT64_MIN);
    ck_assert_int_eq(the_case.data, ASSAY_DATA_TIES);
    ck_assert_uint_eq(the_case.seed, UINT64_MAX);
    ck_assert_str_eq(the_case.numerics, "deepgemm-1d2d,promote_k=64");
    ck_assert(the_case.is_unsafe);
    ck_assert_int_eq(the_case.explicit_bits_count, 2);
    ck_assert_str_eq(the_case.explicit_bits[0].tensor, "a");
    ck_assert_int_eq(the_case.explicit_bits[0].rank, 2);
    ck_assert_int_eq(the_case.explicit_bits[0].index[0], 0);
    ck_assert_int_eq(the_case.explicit_bits[0].index[1], 3);
    ck_assert_uint_eq(the_case.explicit_bits[0].bits, 0x7f);
    ck_assert_str_eq(the_case.explicit_bits[1].tensor, "sfa");
    ck_assert_int_eq(the_case.explicit_bits[1].rank, 0);
    ck_assert_uint_eq(the_case.explicit_bits[1].bits, 0x3f800000);
}
END_TEST

START_TEST(absent_keys_have_their_defaults)
{
    const struct assay_case the_case = parsed("probe_gemm m=1 n=2 out=bf16");
    ck_assert_int_eq(assay_case_value(&the_case, "k"), 128);
    ck_assert_int_eq(assay_case_value(&the_case, "recipe"), 0);
    ck_assert_int_eq(assay_case_value(&the_case, "offset"), -3);
    ck_assert_int_eq(the_case.data, ASSAY_DATA_NORMAL);
    ck_assert_uint_eq(the_case.seed, 0);
    ck_assert_str_eq(the_case.numerics, "");
    ck_assert(!the_case.is_unsafe);
    ck_assert_int_eq(the_case.explicit_bits_count, 0);
}
END_TEST

START_TEST(canonical_lines_are_ordered_and_omit_defaults)
{
    assert_canonical("probe_idle", "probe_idle seed=0");
    assert_canonical("\t probe_idle \t", "probe_idle seed=0");
    assert_canonical("probe_gemm out=bf16 n=2 m=1", "probe_gemm m=1 n=2 out=bf16 seed=0");
    assert_canonical(
        "probe_gemm  seed=5\tdata=normal out=f32  offset=-3 recipe=1d2d k=128 "
        "n=4096 m=65536 unsafe=0",
        "probe_gemm m=65536 n=4096 out=f32 seed=5");
    assert_canonical("probe_gemm bits=b.1:00FF,a:0 unsafe=1 as=x,y=1 seed=0x1f data=wide "
                     "offset=0 out=f32 recipe=1d1d k=0 n=1 m=1",
                     "probe_gemm m=1 n=1 k=0 recipe=1d1d out=f32 offset=0 data=wide "
                     "seed=31 as=x,y=1 unsafe=1 bits=b.1:ff,a:0");
    assert_canonical("probe_idle seed=0x0000000000000000", "probe_idle seed=0");
    assert_canonical("probe_idle seed=18446744073709551615",
                     "probe_idle seed=18446744073709551615");
}
END_TEST

START_TEST(init_gives_defaults_and_set_changes_one_value)
{
    struct assay_case the_case;
    memset(&the_case, 0xAB, sizeof(the_case));
    assay_case_init(&the_case, &gemm);
    ck_assert_int_eq(the_case.value[M], 0);
    ck_assert_int_eq(the_case.value[K], 128);
    ck_assert_int_eq(the_case.value[OFFSET], -3);
    ck_assert_uint_eq(the_case.seed, 0);

    assay_case_set(&the_case, "m", 12);
    assay_case_set(&the_case, "n", 34);
    assay_case_set(&the_case, "out", 1);
    assay_case_set(&the_case, "recipe", 4);
    char line[ASSAY_MAX_CASE_LINE];
    assay_case_format(&the_case, line, sizeof(line));
    ck_assert_str_eq(line, "probe_gemm m=12 n=34 recipe=1d1d out=bf16 seed=0");
}
END_TEST

#define OK        "probe_gemm m=1 n=2 out=f32 "
#define LONG_NAME "a_name_of_exactly_32_characters_"

/* A line, and two parts of the sentence that refuses it: what is wrong, what is right. */
static const struct {
    const char *line, *wrong, *right;
} refused[] = {
    { "", "empty case line", "OPERATION key=value" },
    { " \t ", "empty case line", "OPERATION key=value" },
    { "probe_gem m=1", "operation 'probe_gem'", "did you mean 'probe_gemm'?" },
    { "PROBE_GEMM m=1", "operation 'PROBE_GEMM'", "did you mean 'probe_gemm'?" },
    { "attention m=1", "operation 'attention'", "probe_gemm, probe_idle" },
    { "m=1 n=2 out=f32", "operation 'm=1'", "legal: probe_gemm" },
    { OK "mm=3", "unknown key 'mm' in 'probe_gemm m=1", "did you mean 'm'?" },
    { OK "recip=1d1d", "unknown key 'recip'", "did you mean 'recipe'?" },
    { OK "K=3", "unknown key 'K'", "did you mean 'k'?" },
    { OK "sed=3", "unknown key 'sed'", "did you mean 'seed'?" },
    { OK "zebra=3", "unknown key 'zebra'", "m, n, k, recipe, out, offset, data, seed" },
    { "probe_idle m=3", "unknown key 'm'", "data, seed, as, unsafe, bits" },
    { OK "k", "'k' in 'probe_gemm", "key=value" },
    { OK "=3", "'=3' in 'probe_gemm", "key=value" },
    { OK "k =3", "'k' in 'probe_gemm", "key=value" },
    { OK "k= 3", "'k' has no value", "k=VALUE" },
    { OK "seed=", "'seed' has no value", "seed=VALUE" },
    { OK "m=1", "'m' is given a second time", "once" },
    { OK "k=1 k=1", "'k' is given a second time", "once" },
    { OK "seed=1 seed=1", "'seed' is given a second time", "once" },
    { OK "bits=a:0 bits=b:0", "'bits' is given a second time", "once" },
    { "probe_gemm", "'m' is missing in 'probe_gemm'", "m takes an integer from 1 to" },
    { "probe_gemm m=1 out=f32", "'n' is missing", "from 0 to 4096" },
    { "probe_gemm m=1 n=1", "'out' is missing", "out takes one of bf16, f32" },
    { "probe_gemm m=0 n=1 out=f32", "m=0 is out of range", "from 1 to 65536" },
    { "probe_gemm m=65537 n=1 out=f32", "m=65537 is out of range", "from 1 to 65536" },
    { "probe_gemm m=-1 n=1 out=f32", "m=-1 is out of range", "from 1 to 65536" },
    { OK "k=1048577", "k=1048577 is out of range", "from 0 to 1048576" },
    { OK "k=18446744073709551617", "18446744073709551617 is out of range", "1048576" },
    { OK "offset=9223372036854775808", "out of range", "to 9223372036854775807" },
    { OK "offset=-9223372036854775809", "out of range", "from -9223372036854775808" },
    { OK "k=012", "k=012 is not a decimal integer", "from 0 to 1048576" },
    { OK "k=00", "k=00 is not a decimal integer", "integer" },
    { OK "k=-0", "k=-0 is not a decimal integer", "integer" },
    { OK "k=+1", "k=+1 is not a decimal integer", "integer" },
    { OK "k=--1", "k=--1 is not a decimal integer", "integer" },
    { OK "k=-", "k=- is not a decimal integer", "integer" },
    { OK "k=0x10", "k=0x10 is not a decimal integer", "integer" },
    { OK "k=1e3", "k=1e3 is not a decimal integer", "integer" },
    { OK "k=4k", "k=4k is not a decimal integer", "integer" },
    { OK "k=1,2", "k=1,2 is not a decimal integer", "integer" },
    { OK "k=1=2", "k=1=2 is not a decimal integer", "integer" },
    { OK "recipe=1d3d", "recipe=1d3d is not a choice",
      "takes one of 1d1d, 1d2d, tensor" },
    { OK "recipe=tenor", "recipe=tenor is not a choice", "did you mean 'tensor'?" },
    { OK "recipe=0", "recipe=0 is not a choice", "takes one of 1d1d, 1d2d, tensor" },
    { OK "recipe=TENSOR", "recipe=TENSOR is not a choice", "did you mean 'tensor'?" },
    { OK "data=gauss", "data=gauss is not a kind", "normal, uniform, wide" },
    { OK "data=Normal", "data=Normal is not a kind", "did you mean 'normal'?" },
    { OK "data=0", "data=0 is not a kind", "normal, uniform" },
    { OK "seed=-1", "seed=-1 is not a number", "decimal integer from 0 to" },
    { OK "seed=07", "seed=07 is not a number", "0x" },
    { OK "seed=ff", "seed=ff is not a number", "0x" },
    { OK "seed=0x", "seed=0x is not a number", "16 hexadecimal digits" },
    { OK "seed=0xg", "seed=0xg is not a number", "16 hexadecimal digits" },
    { OK "seed=0X1", "seed=0X1 is not a number", "16 hexadecimal digits" },
    { OK "seed=18446744073709551616", "is out of range", "18446744073709551615" },
    { OK "seed=99999999999999999999", "is out of range", "18446744073709551615" },
    { OK "seed=184467440737095516150", "is out of range", "18446744073709551615" },
    { OK "seed=0x10000000000000000", "is out of range", "16 hexadecimal digits" },
    { OK "as=a;b", "illegal character ';'", "NAME[,knob=value...]" },
    { OK "as=a/b", "illegal character '/'", "NAME[,knob=value...]" },
    { OK "unsafe=2", "unsafe=2 is not a choice", "0 or 1" },
    { OK "unsafe=yes", "unsafe=yes is not a choice", "0 or 1" },
    { OK "unsafe=01", "unsafe=01 is not a choice", "0 or 1" },
    { OK "bits=a.0.3", "'a.0.3' in bits= has no ':'", "TENSOR[.INDEX...]:HEX" },
    { OK "bits=a.0:", "'a.0:' in bits= has no hexadecimal", "TENSOR[.INDEX...]:HEX" },
    { OK "bits=a.0:0x7f", "'a.0:0x7f' in bits= has no hexadecimal", "HEX" },
    { OK "bits=a.0:7f:7f", "'a.0:7f:7f' in bits= has no hexadecimal", "HEX" },
    { OK "bits=a.0:123456789", "more than 8 hexadecimal digits", "HEX" },
    { OK "bits=:7f", "does not begin with the name of a tensor", "TENSOR" },
    { OK "bits=.0:7f", "does not begin with the name of a tensor", "TENSOR" },
    { OK "bits=a-b.0:7f", "does not begin with the name of a tensor", "TENSOR" },
    { OK "bits=" LONG_NAME ":7f", "too long a tensor name", "TENSOR" },
    { OK "bits=a.0.1.2.3.4.5:7f", "too many indices", "INDEX" },
    { OK "bits=a.-1:7f", "an index that is no integer", "INDEX" },
    { OK "bits=a.:7f", "an index that is no integer", "INDEX" },
    { OK "bits=a.01:7f", "an index that is no integer", "INDEX" },
    { OK "bits=a.9223372036854775808:7f", "an index out of range", "INDEX" },
    { OK "bits=a.18446744073709551616:7f", "an index out of range", "INDEX" },
    { OK "bits=a.0:7f,", "'' in bits= has no ':'", "TENSOR[.INDEX...]:HEX" },
    { OK "bits=a.0:7f,,b.0:1", "'' in bits= has no ':'", "TENSOR[.INDEX...]:HEX" },
    { OK "bits=a.0:7f,b:1,a.0:7e", "'a.0:7e' in bits= names an element for the second",
      "TENSOR[.INDEX...]:HEX" },
    { OK "k=1\n", "byte 0x0a in column 31", "printable ASCII" },
    { OK "k=1\r", "byte 0x0d in column 31", "printable ASCII" },
    { "probe_gemm\x01", "byte 0x01 in column 11", "printable ASCII" },
    { "probe_gemm m=1\x7F", "byte 0x7f in column 15", "printable ASCII" },
    { "probe_gemm m=\xC3\xA9", "byte 0xc3 in column 14", "printable ASCII" },
    { "probe_gemm\xC2\xA0m=1", "byte 0xc2 in column 11", "printable ASCII" },
};

START_TEST(bad_lines_are_refused_with_what_is_wrong_and_what_is_right)
{
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct assay_case the_case;
        struct assay_message message = { "" };
        const enum assay_status status =
            assay_case_parse(refused[i].line, &the_case, &message);
        ck_assert_msg(status == ASSAY_REFUSED, "accepted: %s", refused[i].line);
        ck_assert_msg(strstr(message.text, refused[i].wrong) &&
                          strstr(message.text, refused[i].right),
                      "'%s' gave: %s", refused[i].line, message.text);
    }
}
END_TEST

START_TEST(a_line_of_4095_characters_is_read_and_one_more_is_refused)
{
    static const char beginning[] = "probe_idle seed=3";
    char line[ASSAY_MAX_CASE_LINE + 8];
    for (size_t letters = ASSAY_MAX_CASE_LINE - 2; letters < sizeof(line); letters++) {
        struct assay_case the_case;
        struct assay_message message = { "" };
        memset(line, ' ', letters);
        memcpy(line, beginning, sizeof(beginning) - 1);
        line[letters] = '\0';
        const enum assay_status status = assay_case_parse(line, &the_case, &message);
        ck_assert_int_eq(status, letters < 4096 ? ASSAY_RAN : ASSAY_REFUSED);
        if (letters >= 4096) ck_assert_ptr_nonnull(strstr(message.text, "is 4095"));
    }
}
END_TEST

#define INDEX_OF_20   ".1000000000000000000"
#define INDICES_OF_80 INDEX_OF_20 INDEX_OF_20 INDEX_OF_20 INDEX_OF_20

/* "probe_idle bits=..." of @letters characters, from 4082 to 4095: 31 elements of 128
 * characters, comma included, and one whose last index has 6 to 19 digits. */
static void write_line_of_bits(char *line, int letters)
{
    line += sprintf(line, "probe_idle bits=");
    for (int i = 0; i < 31; i++)
        line += sprintf(line,
                        "tensor_of_23_letters_%02d" INDICES_OF_80 INDEX_OF_20 ":17f,", i);
    const int digits = letters - 16 - 31 * 128 - 92;
    sprintf(line, "eightchs" INDICES_OF_80 ".%d%0*d:7f", 1, digits - 1, 0);
}

START_TEST(a_case_whose_canonical_line_is_too_long_is_refused)
{
    /* The canonical line has " seed=0" besides: 7 characters. */
    char line[ASSAY_MAX_CASE_LINE + 200];
    for (int letters = 4082; letters <= 4095; letters++) {
        struct assay_case the_case;
        struct assay_message message = { "" };
        write_line_of_bits(line, letters);
        ck_assert_int_eq((int)strlen(line), letters);
        const enum assay_status status = assay_case_parse(line, &the_case, &message);
        ck_assert_msg(status == (letters + 7 < 4096 ? ASSAY_RAN : ASSAY_REFUSED), "%s",
                      message.text);
        if (status == ASSAY_RAN) {
            char canonical[ASSAY_MAX_CASE_LINE];
            assay_case_format(&the_case, canonical, sizeof(canonical));
            ck_assert_int_eq((int)strlen(canonical), letters + 7);
        } else {
            ck_assert_ptr_nonnull(strstr(message.text, "canonical form"));
        }
    }
}
END_TEST

START_TEST(limits_of_counts_and_lengths_hold)
{
    char line[ASSAY_MAX_CASE_LINE];
    struct assay_case the_case;
    struct assay_message message;
    for (int count = 63; count <= 66; count++) {
        int length = sprintf(line, "probe_idle bits=");
        for (int i = 0; i < count; i++)
            length += sprintf(line + length, "%sa.%d:1", i ? "," : "", i);
        ck_assert_int_eq(assay_case_parse(line, &the_case, &message),
                         count <= 64 ? ASSAY_RAN : ASSAY_REFUSED);
        if (count > 64) ck_assert_ptr_nonnull(strstr(message.text, "limit of 64"));
    }
    for (int letters = 510; letters <= 513; letters++) {
        sprintf(line, "probe_idle as=%0*d", letters, 0);
        ck_assert_int_eq(assay_case_parse(line, &the_case, &message),
                         letters <= 511 ? ASSAY_RAN : ASSAY_REFUSED);
        if (letters > 511) ck_assert_ptr_nonnull(strstr(message.text, "limit is 511"));
    }
    the_case = parsed("probe_idle bits=a:1,a.0:1,a.0.0:1,a.0.0.0.0.0:1");
    ck_assert_int_eq(the_case.explicit_bits_count, 4);
    the_case = parsed("probe_idle bits=a_name_of_exactly_31_characters:0");
    ck_assert_str_eq(the_case.explicit_bits[0].tensor, "a_name_of_exactly_31_characters");
}
END_TEST

START_TEST(messages_quote_long_values_in_part)
{
    char line[ASSAY_MAX_CASE_LINE];
    static const char *const starts[] = { "",           OK,           OK "k=",
                                          OK "recipe=", OK "data=",   OK "seed=",
                                          OK "as=;",    OK "unsafe=", OK "bits=" };
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        struct assay_case the_case;
        struct assay_message message;
        sprintf(line, "%s%0*d", starts[i], 4000, 0);
        ck_assert_int_eq(assay_case_parse(line, &the_case, &message), ASSAY_REFUSED);
        ck_assert_ptr_nonnull(strstr(message.text, "0000..."));
        ck_assert_uint_lt(strlen(message.text), 400);
    }
}
END_TEST

START_TEST(lists_that_are_too_long_end_in_dots)
{
    static char names[ASSAY_MAX_PARAMETERS][24];
    static struct assay_choice choices[ASSAY_MAX_PARAMETERS + 1];
    for (int i = 0; i < ASSAY_MAX_PARAMETERS; i++) {
        sprintf(names[i], "parameter_number_%02d", i);
        choices[i].name = names[i];
        wide_parameters[i] =
            (struct assay_parameter){ .name = names[i], .choices = choices };
    }
    struct assay_case the_case;
    struct assay_message message;
    ck_assert_int_eq(assay_case_parse("probe_wide zebra=1", &the_case, &message),
                     ASSAY_REFUSED);
    ck_assert_ptr_nonnull(strstr(message.text, "parameter_number_05, "));
    ck_assert_str_eq(message.text + strlen(message.text) - 3, "...");

    ck_assert_int_eq(
        assay_case_parse("probe_wide parameter_number_07=x", &the_case, &message),
        ASSAY_REFUSED);
    ck_assert_ptr_nonnull(strstr(message.text, "takes one of parameter_number_00, "));
    ck_assert_str_eq(message.text + strlen(message.text) - 3, "...");
}
END_TEST

START_TEST(an_operation_may_have_32_parameters)
{
    static char names[ASSAY_MAX_PARAMETERS][8];
    char line[ASSAY_MAX_CASE_LINE] = "probe_wide", canonical[ASSAY_MAX_CASE_LINE];
    char expected[ASSAY_MAX_CASE_LINE] = "probe_wide";
    for (int i = 0; i < ASSAY_MAX_PARAMETERS; i++) {
        sprintf(names[i], "p%d", i);
        wide_parameters[i] = (struct assay_parameter){ .name = names[i], .maximum = 99 };
        sprintf(line + strlen(line), " p%d=%d", ASSAY_MAX_PARAMETERS - 1 - i,
                2 * (ASSAY_MAX_PARAMETERS - 1 - i));
        if (i) sprintf(expected + strlen(expected), " p%d=%d", i, 2 * i);
    }
    strcat(expected, " seed=0");
    const struct assay_case the_case = parsed(line);
    assay_case_format(&the_case, canonical, sizeof(canonical));
    ck_assert_str_eq(canonical, expected);
}
END_TEST

static uint64_t random_state = 88172645463325252U;

static uint64_t random_word(void)
{
    /* xorshift64, Marsaglia 2003. */
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

static int random_below(int bound)
{
    return (int)(random_word() >> 33) % bound;
}

enum { MAX_PAIRS = PARAMETERS + 5 };

/* Key=value pairs as a user writes them and as the canonical line has them ("" when it
 * leaves them out), in canonical order. */
struct pairs {
    int count;
    char written[MAX_PAIRS][256], canonical[MAX_PAIRS][256];
};

__attribute__((format(printf, 3, 4))) static void
add_pair(struct pairs *pairs, const char *canonical, const char *format, ...)
{
    const int place = pairs->count++;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(pairs->written[place], sizeof(pairs->written[place]), format, arguments);
    va_end(arguments);
    strcpy(pairs->canonical[place], canonical ? canonical : pairs->written[place]);
}

static void add_random_bits(struct pairs *pairs)
{
    static const char *const tensors[] = { "a", "b", "sfa", "block_table" };
    char written[256] = "bits=", canonical[256] = "bits=";
    for (int i = 0; i < 4; i++) {
        if (random_below(2) && i) continue;
        char place[64];
        sprintf(place, "%s%s", i ? "," : "", tensors[i]);
        for (int j = random_below(3); j > 0; j--)
            sprintf(place + strlen(place), ".%d", random_below(1000));
        const unsigned bits = (unsigned)random_word() >> random_below(32);
        sprintf(written + strlen(written), "%s:%0*X", place, random_below(9), bits);
        sprintf(canonical + strlen(canonical), "%s:%x", place, bits);
    }
    add_pair(pairs, canonical, "%s", written);
}

static void draw_pairs(struct pairs *pairs)
{
    static const char *const recipe[] = { "1d1d", "1d2d", "tensor" };
    pairs->count = 0;
    add_pair(pairs, NULL, "m=%d", 1 + random_below(65536));
    add_pair(pairs, NULL, "n=%d", random_below(4097));
    if (random_below(2))
        add_pair(pairs, NULL, "k=%d", 129 + random_below(1000));
    else if (random_below(2))
        add_pair(pairs, "", "k=128");
    if (random_below(2)) {
        const int choice = random_below(3);
        add_pair(pairs, choice == 1 ? "" : NULL, "recipe=%s", recipe[choice]);
    }
    add_pair(pairs, NULL, "out=%s", random_below(2) ? "bf16" : "f32");
    if (random_below(2))
        add_pair(pairs, NULL, "offset=%" PRId64,
                 (int64_t)random_word() >> random_below(32) | 1 << 4);
    if (random_below(2)) {
        int kind;
        do
            kind = random_below(ASSAY_DATA_KIND_COUNT);
        while (kind == ASSAY_DATA_NEEDLE);
        add_pair(pairs, kind ? NULL : "", "data=%s", assay_data_kinds[kind].name);
    }
    const uint64_t seed = random_word() >> random_below(64);
    char canonical_seed[64];
    sprintf(canonical_seed, "seed=%" PRIu64, seed);
    if (random_below(2))
        add_pair(pairs, NULL, "seed=%" PRIu64, seed);
    else
        add_pair(pairs, canonical_seed, "seed=0x%" PRIx64, seed);
    if (random_below(2)) add_pair(pairs, NULL, "as=name-%d,knob_x=-4", random_below(99));
    if (random_below(2)) {
        const int is_unsafe = random_below(2);
        add_pair(pairs, is_unsafe ? NULL : "", "unsafe=%d", is_unsafe);
    }
    if (random_below(2)) add_random_bits(pairs);
}

static void write_lines(const struct pairs *pairs, char *line, char *canonical)
{
    static const char *const separators[] = { " ", "  ", "\t", " \t " };
    int order[MAX_PAIRS] = { 0 };
    for (int i = 0; i < pairs->count; i++) {
        const int place = random_below(i + 1);
        order[i] = order[place];
        order[place] = i;
    }
    strcpy(line, "probe_gemm");
    strcpy(canonical, "probe_gemm");
    for (int i = 0; i < pairs->count; i++) {
        strcat(line, separators[random_below(4)]);
        strcat(line, pairs->written[order[i]]);
        if (!pairs->canonical[i][0]) continue;
        strcat(canonical, " ");
        strcat(canonical, pairs->canonical[i]);
    }
}

START_TEST(random_lines_have_the_expected_canonical_form_which_is_its_own)
{
    for (int i = 0; i < 50000; i++) {
        struct pairs pairs;
        char line[ASSAY_MAX_CASE_LINE], expected[ASSAY_MAX_CASE_LINE];
        draw_pairs(&pairs);
        write_lines(&pairs, line, expected);
        assert_canonical(line, expected);

        const struct assay_case first = parsed(line), second = parsed(expected);
        ck_assert_msg(memcmp(&first, &second, sizeof(first)) == 0, "%s", line);
        assert_canonical(expected, expected);
    }
}
END_TEST

START_TEST(garbled_lines_are_refused_or_have_a_stable_canonical_form)
{
    static const char alphabet[] = "mnkoutfseda=,.:-_0123456789x \t\x01\xFF";
    int refusals = 0;
    for (int i = 0; i < 100000; i++) {
        struct pairs pairs;
        char line[ASSAY_MAX_CASE_LINE], canonical[ASSAY_MAX_CASE_LINE];
        draw_pairs(&pairs);
        write_lines(&pairs, line, canonical);
        for (int j = 0; j <= i % 3; j++)
            line[11 + random_below((int)strlen(line) - 11)] =
                alphabet[random_below(sizeof(alphabet) - 1)];

        struct assay_case the_case;
        struct assay_message message = { "" };
        if (assay_case_parse(line, &the_case, &message) != ASSAY_RAN) {
            ck_assert_uint_gt(strlen(message.text), 20);
            refusals++;
            continue;
        }
        assay_case_format(&the_case, canonical, sizeof(canonical));
        assert_canonical(canonical, canonical);
    }
    ck_assert_int_gt(refusals, 10000);
    ck_assert_int_lt(refusals, 99000);
}
END_TEST

int main(void)
{
    return run_tests("case",
                     (const TTest *const[]){
                         every_key_reaches_its_field,
                         absent_keys_have_their_defaults,
                         canonical_lines_are_ordered_and_omit_defaults,
                         init_gives_defaults_and_set_changes_one_value,
                         bad_lines_are_refused_with_what_is_wrong_and_what_is_right,
                         a_line_of_4095_characters_is_read_and_one_more_is_refused,
                         a_case_whose_canonical_line_is_too_long_is_refused,
                         limits_of_counts_and_lengths_hold,
                         messages_quote_long_values_in_part,
                         lists_that_are_too_long_end_in_dots,
                         an_operation_may_have_32_parameters,
                         random_lines_have_the_expected_canonical_form_which_is_its_own,
                         garbled_lines_are_refused_or_have_a_stable_canonical_form,
                         NULL,
                     });
}
