/* SPDX-License-Identifier: MIT */
/* Lines that are no result: cut off, with members of wrong types and sizes, with names
 * that nobody knows. Each is refused with a sentence, or is a result that all reports can
 * show. */
#include "tests/verify/reported_trial.h"
#include "verify/report/json_read.h"
#include "verify/report/json_result.h"

#include <math.h>

static int accepted, refused;

static char *line_of(const struct assay_result *result)
{
    char *line = NULL;
    size_t size;
    FILE *const file = open_memstream(&line, &size);
    ck_assert_int_eq(assay_json_result_write(file, result), ASSAY_RAN);
    fclose(file);
    return line;
}

/* A result with something in every member, and few differences. */
static struct assay_result rich_result(void)
{
    struct assay_result result = result_of_line(
        "fp8_gemm_nt m=2 n=8 k=128 out=bf16 seed=5", TRIAL_OF_FLIPPED_BITS);
    struct assay_output_result *const d = &result.output[0];
    ck_assert_int_eq(d->criterion_count, 4);
    d->difference_count = 2;
    d->has_exact = true;
    d->inexact = 1;
    d->inexact_worst = d->worst;
    d->bound_worst_value = (double)NAN;
    result.model_inexact = 1;
    result.model_max_error_over_bound = 0.5;
    result.remark = "ours: no upstream kernel";
    result.candidate_runs = 12;
    result.finding_count = 1;
    result.finding[0] = (struct assay_finding){ .check = assay_checks[0]->name,
                                                .sentence = "what was done",
                                                .output = "d",
                                                .tensor = d->tensor,
                                                .elements = 2,
                                                .worst = d->worst };
    strcpy(result.reference, "plugin:\xff.so");
    strcpy(result.explanation, "cublaslt-fast");
    strcpy(result.message.text, "message");
    strcpy(result.source, "a.safetensors");
    return result;
}

/* Reads the line; what is accepted has to be fit for all reports and to stay itself. */
static void offer(const char *line)
{
    struct assay_result result, again;
    struct assay_message message = { "" };
    const enum assay_status status = assay_json_result_read(line, &result, &message);
    if (status != ASSAY_RAN) {
        ck_assert_int_eq(status, ASSAY_REFUSED);
        ck_assert(*message.text && !strchr(message.text, '\n'));
        ck_assert_ptr_null(result.output);
        ck_assert_ptr_null(result.texts);
        refused++;
        return;
    }
    accepted++;
    for (int i = 0; assay_reports[i]; i++)
        free(written(assay_reports[i]->name, &plain_header, &result, &summary));
    char *const first = line_of(&result);
    ck_assert_msg(assay_json_result_read(first, &again, &message) == ASSAY_RAN, "%s: %s",
                  message.text, first);
    char *const second = line_of(&again);
    ck_assert_str_eq(first, second);
    free(first);
    free(second);
    assay_result_close(&again);
    assay_result_close(&result);
}

START_TEST(every_beginning_of_a_line_and_members_that_are_there_twice_are_refused)
{
    struct assay_result result = rich_result();
    char *const line = line_of(&result);
    const size_t length = strlen(line) - 1;
    ck_assert_uint_gt(length, 2000);
    for (size_t i = 0; i < length; i++) {
        char *const beginning = strndup(line, i);
        offer(beginning);
        free(beginning);
    }
    ck_assert_int_eq(accepted, 0);
    offer(line);
    ck_assert_int_eq(accepted, 1);
    char *twice = NULL;
    ck_assert_int_gt(asprintf(&twice, "{\"passed\":true,%s", line + 1), 0);
    offer(twice);
    ck_assert_int_eq(accepted, 1);
    free(twice);
    free(line);
    assay_result_close(&result);
}
END_TEST

START_TEST(lines_with_any_byte_changed_are_survived)
{
    struct assay_result result = rich_result();
    char *const line = line_of(&result);
    const size_t length = strlen(line);
    uint64_t state = 12345;
    for (int i = 0; i < 20000; i++) {
        char *const changed = strdup(line);
        for (int times = i % 3; times >= 0; times--) {
            state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
            changed[(state >> 33) % length] =
                i % 2 ? "0123456789abcdef\"[]{}:,-.eE"[(state >> 20) % 27]
                      : (char)(state >> 24);
        }
        offer(changed);
        free(changed);
    }
    ck_assert_int_gt(accepted, 100);
    ck_assert_int_gt(refused, 10000);
    free(line);
    assay_result_close(&result);
}
END_TEST

static json_t *hostile_value(int number)
{
    static const char *const texts[] = {
        "null",
        "true",
        "false",
        "\"\"",
        "\"x\"",
        "\"0xffffffffffffffff\"",
        "\"0xff\"",
        "-1",
        "0",
        "1",
        "255",
        "2147483648",
        "9007199254740992",
        "9007199254740993",
        "9223372036854775807",
        "-9223372036854775808",
        "1e308",
        "-0.5",
        "[]",
        "{}",
        "[[]]",
        "[{}]",
        "[0]",
        "[1,1]",
        "[0,0,0,0,0,0]",
        "[9007199254740992]",
        "[4294967296,4294967296]",
        "[0,5]",
        "[-1,5]",
        "{\"torch\":1,\"deepgemm\":null}",
        "[\"bound\",\"bound\"]",
        "\"e2m1\"",
        "\"i32\"",
        "\"f32\"",
        "\"ran\"",
        "\"equal\"",
        "\"00\"",
        "\"6\"",
        "\"zz\"",
    };
    const int count = sizeof texts / sizeof *texts;
    if (number < count) return json_loads(texts[number], JSON_DECODE_ANY, NULL);
    char text[5000];
    memset(text, 'a', sizeof text);
    switch (number - count) {
    case 0: return json_stringn(text, sizeof text);
    case 1: return json_stringn(text, 320);
    case 2: {
        json_t *const array = json_array();
        for (int i = 0; i < 300; i++)
            json_array_append_new(array, json_object());
        return array;
    }
    default: return NULL;
    }
}

static void offer_tree(json_t *root)
{
    char *const line = json_dumps(root, JSON_COMPACT);
    offer(line);
    free(line);
}

static void attack(json_t *root, json_t *value);

/* Puts every hostile value in the place of the member, and then nothing. */
static void attack_member(json_t *root, json_t *object, const char *key)
{
    json_t *const item = json_incref(json_object_get(object, key));
    json_t *hostile;
    attack(root, item);
    for (int i = 0; (hostile = hostile_value(i)); i++) {
        json_object_set_new(object, key, hostile);
        offer_tree(root);
    }
    json_object_del(object, key);
    offer_tree(root);
    json_object_set_new(object, key, item);
}

static void attack(json_t *root, json_t *value)
{
    json_t *item, *hostile, *const keys = json_array();
    const char *key;
    size_t at;
    json_object_foreach(value, key, item) json_array_append_new(keys, json_string(key));
    json_array_foreach(keys, at, item)
        attack_member(root, value, json_string_value(item));
    json_decref(keys);
    for (at = 0; at < json_array_size(value); at++) {
        item = json_incref(json_array_get(value, at));
        attack(root, item);
        for (int i = 0; (hostile = hostile_value(i)); i++) {
            json_array_set_new(value, at, hostile);
            offer_tree(root);
        }
        json_array_set_new(value, at, item);
    }
}

START_TEST(hostile_values_in_every_place_are_survived)
{
    struct assay_result result = rich_result();
    char *const line = line_of(&result);
    json_t *const root = json_loads(line, 0, NULL);
    attack(root, root);
    ck_assert_int_gt(accepted, 500);
    ck_assert_int_gt(refused, 2000);
    json_decref(root);
    free(line);
    assay_result_close(&result);
}
END_TEST

/* A line with one member of it, or of its first output, changed. */
static const struct {
    bool is_of_output;
    const char *key, *value, *sentence;
} wrong[] = {
    { false, "type", "\"header\"",
      "'type' of the case is 'header'; it has to be 'case'" },
    { false, "status", "\"done\"",
      "'status' of the case is 'done'; it has to be the name of a status" },
    { false, "verdict", "7",
      "'verdict' of the case is 7; it has to be a string that is not empty" },
    { false, "operation", "\"gemm\"",
      "'operation' of the case is 'gemm'; it has to be the name of an operation" },
    { false, "passed", "1", "'passed' of the case is 1; it has to be true or false" },
    { false, "checks", "[\"magic\"]",
      "'checks' of the case is an array; it has to be an array of names of checks" },
    { false, "criteria", "{\"magic\":\"would pass\"}",
      "'criteria' of the case is an object; it has to be an object of names of "
      "criteria" },
    { false, "input_hash", "\"0xABCDEF0123456789\"", "0x and 16 hexadecimal digits" },
    { false, "seconds", "null", "'seconds' of the case is null; it has to be a number" },
    { false, "seconds", "-1.5", "'seconds' of the case is -1.5; it has to be " },
    { false, "candidate_runs", "4294967296", "a whole number from 0 to 2147483647" },
    { false, "outputs", "{}", "an array of at most 16 objects" },
    { false, "findings", "[{\"check\":\"magic\"}]",
      "'check' of finding 0 is 'magic'; it has to be the name of a check" },
    { true, "format", "\"fp8\"",
      "'format' of output 0 is 'fp8'; it has to be the name of a format" },
    { true, "shape", "[2,-8]",
      "'shape' of output 0 is an array; it has to be at most 5" },
    { true, "elements", "17", "'elements' of output 0 is 17; it has to be " },
    { true, "defined", "17",
      "'defined' of output 0 is 17; it has to be a whole number from 0 to 16" },
    { true, "differ", "-1", "'differ' of output 0 is -1; it has to be a whole number" },
    { true, "touched", "17", "'touched' of output 0 is 17; it has to be a whole number" },
    { true, "worst", "{\"index\":[2,0]}",
      "'index' of 'worst' of output 0 is an array; it has to be the place" },
    { true, "differences", "[{}]",
      "'index' of difference 0 of output 0 is missing; it " },
    { true, "bound_worst", "3",
      "'bound_worst' of output 0 is 3; it has to be an object" },
    { true, "criteria", "[{\"name\":\"torch\",\"source\":\"mine\",\"rule\":\"any\"}]",
      "'name' of criterion 0 of output 0 is 'torch'; it has to be the name of a " },
};

START_TEST(what_is_wrong_is_said_with_its_place)
{
    struct assay_result result = rich_result();
    char *const line = line_of(&result);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        json_t *const root = json_loads(line, 0, NULL);
        json_t *const output = json_array_get(json_object_get(root, "outputs"), 0);
        json_object_set_new(wrong[i].is_of_output ? output : root, wrong[i].key,
                            json_loads(wrong[i].value, JSON_DECODE_ANY, NULL));
        char *const changed = json_dumps(root, 0);
        struct assay_result read;
        struct assay_message message;
        ck_assert_int_eq(assay_json_result_read(changed, &read, &message), ASSAY_REFUSED);
        assert_has(message.text, wrong[i].sentence);
        free(changed);
        json_decref(root);
    }
    free(line);
    assay_result_close(&result);
}
END_TEST

START_TEST(what_is_no_object_is_refused)
{
    static const char *const lines[] = {
        "", " ", "[]", "7", "null", "{}{}", "{}", "{\"a\":1", "abc", "{\"type\":1}"
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        offer(lines[i]);
    offer("{\"type\":\"case\",\"type\":\"case\"}");
    ck_assert_int_eq(accepted, 0);
    char deep[10000];
    memset(deep, '[', sizeof deep - 1);
    deep[sizeof deep - 1] = '\0';
    offer(deep);
    ck_assert_int_eq(accepted, 0);
}
END_TEST

/* Unknown members in every object change nothing. */
static void add_unknown(json_t *value)
{
    const char *key;
    json_t *item;
    void *next;
    json_object_foreach_safe(value, next, key, item)
    {
        if (strcmp(key, "criteria") != 0 || !json_is_object(item)) add_unknown(item);
    }
    if (json_is_object(value)) {
        json_object_set_new(value, "number", json_integer(7));
        json_object_set_new(value, "a_later_one", json_pack("{s:[n]}", "x"));
    }
    size_t at;
    json_array_foreach(value, at, item) add_unknown(item);
}

START_TEST(members_of_later_versions_are_ignored)
{
    struct assay_result result = rich_result(), back;
    struct assay_message message;
    char *const line = line_of(&result);
    json_t *const root = json_loads(line, 0, NULL);
    add_unknown(root);
    char *const extended = json_dumps(root, 0);
    ck_assert_uint_gt(strlen(extended), strlen(line) + 200);
    ck_assert_msg(assay_json_result_read(extended, &back, &message) == ASSAY_RAN, "%s",
                  message.text);
    char *const again = line_of(&back);
    ck_assert_str_eq(again, line);
    free(line);
    free(extended);
    free(again);
    json_decref(root);
    assay_result_close(&back);
    assay_result_close(&result);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_beginning_of_a_line_and_members_that_are_there_twice_are_refused,
        lines_with_any_byte_changed_are_survived,
        hostile_values_in_every_place_are_survived,
        what_is_wrong_is_said_with_its_place,
        what_is_no_object_is_refused,
        members_of_later_versions_are_ignored,
        NULL,
    };
    return run_tests("report_hostile", tests);
}
