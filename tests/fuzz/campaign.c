/* SPDX-License-Identifier: MIT */
/* Campaigns: which case a number is, how they are shared out, what has to be refused, and
 * what is counted. */
#include "fuzz/campaign/campaign.h"

#include "fuzz/campaign/coverage.h"
#include "fuzz/campaign/permutation.h"
#include "fuzz/campaign/shard.h"
#include "fuzz/campaign/tally.h"
#include "tests/harness.h"

#include <stdio.h>
#include <string.h>

static struct assay_campaign campaign_of(int operations, uint64_t seed)
{
    struct assay_campaign campaign = { .seed = seed, .multiply_adds = 1 << 20 };
    for (int i = 0; assay_operations[i] && (!operations || i < operations); i++)
        campaign.operation[campaign.operations++] = assay_operations[i];
    return campaign;
}

static int all_operations(void)
{
    return campaign_of(0, 0).operations;
}

/* --- the permutation -------------------------------------------------------------- */

static void expect_every_number_once(uint64_t size, uint64_t seed)
{
    const struct assay_permutation permutation =
        assay_permutation_open(size, seed, "name", 0);
    uint8_t *const is_seen = calloc(size, 1);
    for (uint64_t i = 0; i < size; i++) {
        const uint64_t entry = assay_permutation_at(&permutation, i);
        ck_assert_uint_lt(entry, size);
        ck_assert(!is_seen[entry]);
        is_seen[entry] = 1;
    }
    free(is_seen);
}

START_TEST(a_permutation_has_every_number_once)
{
    static const uint64_t sizes[] = { 1,  2,  3,   4,   5,   7,    15,   16,   17,
                                      63, 64, 255, 256, 257, 1000, 4097, 65537 };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        for (uint64_t seed = 0; seed < 3; seed++)
            expect_every_number_once(sizes[i], seed);
}
END_TEST

static int by_value(const void *a, const void *b)
{
    const uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;
    return (first > second) - (first < second);
}

START_TEST(a_permutation_of_any_size_has_no_number_twice)
{
    enum { SOME = 20000 };
    static const uint64_t sizes[] = { UINT64_C(1) << 40, (UINT64_C(1) << 62) + 1,
                                      (UINT64_C(1) << 63) + 12345, UINT64_MAX };
    static uint64_t entry[SOME];
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        const struct assay_permutation permutation =
            assay_permutation_open(sizes[i], 5, "name", 0);
        for (uint64_t at = 0; at < SOME; at++) {
            entry[at] = assay_permutation_at(&permutation, at);
            ck_assert_uint_lt(entry[at], sizes[i]);
        }
        qsort(entry, SOME, sizeof(*entry), by_value);
        for (int at = 1; at < SOME; at++)
            ck_assert_uint_ne(entry[at - 1], entry[at]);
    }
}
END_TEST

/* Entries that two permutations of 1000 have in the same place: one is expected. */
static int common(const struct assay_permutation *a, const struct assay_permutation *b)
{
    int count = 0;
    for (uint64_t i = 0; i < 1000; i++)
        count += assay_permutation_at(a, i) == assay_permutation_at(b, i);
    return count;
}

START_TEST(seeds_names_and_passes_give_other_permutations)
{
    const struct assay_permutation first = assay_permutation_open(1000, 1, "a", 0),
                                   seed = assay_permutation_open(1000, 2, "a", 0),
                                   name = assay_permutation_open(1000, 1, "b", 0),
                                   pass = assay_permutation_open(1000, 1, "a", 1);
    int unmoved = 0;
    for (uint64_t i = 0; i < 1000; i++)
        unmoved += assay_permutation_at(&first, i) == i;
    ck_assert_int_lt(unmoved, 10);
    ck_assert_int_lt(common(&first, &seed), 10);
    ck_assert_int_lt(common(&first, &name), 10);
    ck_assert_int_lt(common(&first, &pass), 10);
}
END_TEST

/* --- numbers ---------------------------------------------------------------------- */

START_TEST(a_number_is_the_same_case_whatever_was_drawn_before)
{
    enum { CASES = 200 };
    const struct assay_campaign campaign = campaign_of(0, 7), other = campaign_of(0, 8);
    static struct assay_campaign_case forward[CASES], again, elsewhere;
    int equal = 0;
    for (int i = 0; i < CASES; i++)
        assay_campaign_draw(&campaign, i, &forward[i]);
    for (int i = CASES - 1; i >= 0; i--) {
        assay_campaign_draw(&campaign, i, &again);
        assay_campaign_draw(&other, i, &elsewhere);
        ck_assert_str_eq(again.line, forward[i].line);
        ck_assert_ptr_eq(again.negative, forward[i].negative);
        equal += strcmp(elsewhere.line, again.line) == 0;
    }
    ck_assert_int_eq(equal, 0);
}
END_TEST

START_TEST(another_seed_gives_other_values_to_the_same_classes)
{
    struct assay_campaign campaign = { .operation = { assay_operation_find("sfu") },
                                       .operations = 1,
                                       .multiply_adds = 1 << 20 };
    struct assay_campaign other = campaign;
    struct assay_campaign_case first, second;
    int common_classes = 0;
    other.seed = 1;
    for (int64_t i = 0; i < 2000; i++) {
        assay_campaign_draw(&campaign, i, &first);
        assay_campaign_draw(&other, i, &second);
        ck_assert_str_ne(first.line, second.line);
        common_classes +=
            memcmp(first.classes, second.classes,
                   sizeof(int) * (size_t)assay_feature_count(campaign.operation[0])) == 0;
    }
    ck_assert_int_gt(common_classes, 5);
}
END_TEST

START_TEST(every_block_has_every_operation_once)
{
    const struct assay_campaign campaign = campaign_of(0, 3);
    const int count = campaign.operations;
    int turns[ASSAY_CAMPAIGN_MAX_OPERATIONS] = { 0 };
    for (int64_t block = 0; block < 500; block++) {
        uint64_t seen = 0;
        for (int i = 0; i < count; i++)
            seen |= UINT64_C(1) << assay_campaign_operation(&campaign, block * count + i);
        ck_assert_uint_eq(seen, (UINT64_C(1) << count) - 1);
        turns[assay_campaign_operation(&campaign, block * count)]++;
    }
    for (int i = 0; i < count; i++)
        ck_assert_int_gt(turns[i], 0);
}
END_TEST

START_TEST(every_shard_meets_every_operation)
{
    for (int operations = 1; operations <= all_operations(); operations++) {
        const struct assay_campaign campaign = campaign_of(operations, 1);
        for (int64_t count = 1; count <= 400; count += count < 40 ? 1 : 36)
            for (int64_t index = 0; index < count; index += 1 + count / 8) {
                const struct assay_shard shard = { index, count };
                uint64_t seen = 0;
                for (int64_t i = 0; i < 20 * operations + 40; i++)
                    seen |= UINT64_C(1) << assay_campaign_operation(
                                &campaign, assay_shard_number(shard, i));
                ck_assert_msg(seen == (UINT64_C(1) << operations) - 1,
                              "%d operations, shard %d of %d", operations, (int)index,
                              (int)count);
            }
    }
}
END_TEST

START_TEST(shards_share_all_numbers_out)
{
    enum { CASES = 1000 };
    for (int64_t cases = 0; cases <= CASES; cases += 37)
        for (int64_t count = 1; count <= 30; count++) {
            uint8_t is_seen[CASES] = { 0 };
            int64_t sum = 0;
            for (int64_t index = 0; index < count; index++) {
                const struct assay_shard shard = { index, count };
                const int64_t own = assay_shard_cases(shard, cases);
                for (int64_t i = 0; i < own; i++) {
                    const int64_t number = assay_shard_number(shard, i);
                    ck_assert(number < cases && !is_seen[number]);
                    is_seen[number] = 1;
                }
                sum += own;
            }
            ck_assert_int_eq(sum, cases);
        }
}
END_TEST

START_TEST(one_number_in_sixteen_is_illegal)
{
    const struct assay_campaign campaign = campaign_of(0, 3);
    int places = 0;
    for (int64_t first = 0; first < 16000; first += ASSAY_CAMPAIGN_NEGATIVE_PERIOD) {
        int count = 0;
        for (int64_t i = 0; i < ASSAY_CAMPAIGN_NEGATIVE_PERIOD; i++)
            if (assay_campaign_negative(&campaign, first + i)) {
                count++;
                places |= 1 << i;
            }
        ck_assert_int_eq(count, 1);
    }
    ck_assert_int_eq(places, (1 << ASSAY_CAMPAIGN_NEGATIVE_PERIOD) - 1);
}
END_TEST

/* --- shapes ----------------------------------------------------------------------- */

/* The line without data and seed. */
static void shape_of(const char *line, char *shape)
{
    struct assay_case the_case;
    struct assay_message message;
    ck_assert_int_eq(assay_case_parse(line, &the_case, &message), ASSAY_RAN);
    the_case.data = ASSAY_DATA_NORMAL;
    the_case.seed = 0;
    assay_case_format(&the_case, shape, ASSAY_MAX_CASE_LINE);
}

START_TEST(a_pool_has_so_many_shapes)
{
    enum { SHAPES = 5, BLOCKS = 60 };
    struct assay_campaign campaign = campaign_of(1, 1);
    static char shapes[BLOCKS][ASSAY_MAX_CASE_LINE];
    struct assay_campaign_case drawn;
    int count = 0, lines = 0;
    char last[ASSAY_MAX_CASE_LINE] = "";
    campaign.shape_pool = SHAPES;
    for (int64_t i = 0; i < BLOCKS; i++) {
        assay_campaign_draw(&campaign, i, &drawn);
        if (drawn.negative) continue;
        lines += strcmp(last, drawn.line) != 0;
        strcpy(last, drawn.line);
        shape_of(drawn.line, shapes[count]);
        int at = 0;
        while (strcmp(shapes[at], shapes[count]) != 0)
            at++;
        count += at == count;
    }
    ck_assert_int_eq(count, SHAPES);
    ck_assert_int_gt(lines, BLOCKS - BLOCKS / 8);
}
END_TEST

/* --- what is illegal -------------------------------------------------------------- */

static bool is_known(const char *name)
{
    return assay_operation_find(name) != NULL;
}

static bool has_word(const char *sentence, const char *word)
{
    static const char in_words[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    const size_t length = strlen(word);
    for (const char *at = sentence; (at = strstr(at, word)); at++)
        if ((at == sentence || !strchr(in_words, at[-1])) &&
            (!at[length] || !strchr(in_words, at[length])))
            return true;
    return false;
}

/* Whether the sentence names a key or a choice of the change, or a tensor of its bits. */
static bool speaks_of(const char *sentence, const char *change)
{
    char copy[512], *rest = copy;
    ck_assert_uint_lt(strlen(change), sizeof(copy));
    strcpy(copy, change);
    for (char *word; (word = strsep(&rest, " =,.:@+"));)
        if (*word >= 'a' && *word <= 'z' && has_word(sentence, word)) return true;
    return false;
}

static void expect_refused(const struct assay_negative *row, int draws)
{
    struct assay_campaign campaign = { .operation = { assay_operation_find(
                                           row->operation) },
                                       .operations = 1,
                                       .seed = 11,
                                       .multiply_adds = 1 << 18 };
    struct assay_message message;
    int spoken = 0;
    for (int64_t i = 0, done = 0; done < draws; i++) {
        static struct assay_campaign_case drawn;
        struct assay_case the_case;
        char line[ASSAY_MAX_CASE_LINE];
        assay_campaign_draw(&campaign, i, &drawn);
        if (drawn.negative) continue;
        done++;
        ck_assert_msg(assay_negative_try(drawn.line, &message) == ASSAY_RAN, "%s: %s",
                      drawn.line, message.text);
        ck_assert_int_eq(assay_case_parse(drawn.line, &the_case, &message), ASSAY_RAN);
        assay_negative_apply(row, &the_case, line);
        message.text[0] = '\0';
        ck_assert_msg(assay_negative_try(line, &message) == ASSAY_REFUSED &&
                          *message.text,
                      "%s (%s)", line, row->why);
        spoken += speaks_of(message.text, row->change);
    }
    ck_assert_msg(spoken > 0, "%s %s: %s", row->operation, row->change, message.text);
}

START_TEST(what_is_illegal_is_refused_and_what_it_was_made_of_is_not)
{
    for (const struct assay_negative *row = assay_negatives; row->operation; row++) {
        ck_assert_msg(is_known(row->operation), "%s", row->operation);
        expect_refused(row, 12);
    }
}
END_TEST

START_TEST(every_operation_has_rows_of_what_is_illegal)
{
    for (int i = 0; assay_operations[i]; i++)
        ck_assert_int_ge(assay_negative_count(assay_operations[i]->name), 3);
}
END_TEST

/* --- coverage --------------------------------------------------------------------- */

START_TEST(coverage_counts_classes_and_pairs_once)
{
    const struct assay_operation *const operation = assay_operation_find("convert");
    struct assay_coverage coverage;
    char note[ASSAY_MAX_NOTE];
    int classes[ASSAY_MAX_FEATURES] = { 0 };
    ck_assert_int_eq(assay_coverage_open(&coverage, operation), ASSAY_RAN);
    const int features = assay_feature_count(operation);
    ck_assert_int_ge(features, 2);
    for (int i = 0; i < 3; i++) {
        assay_coverage_note(operation, classes, note);
        ck_assert(assay_coverage_add(&coverage, note));
    }
    struct assay_coverage_counts counts = assay_coverage_count(&coverage);
    ck_assert_int_eq(counts.classes, features);
    ck_assert_int_eq(counts.pairs, features * (features - 1) / 2);
    classes[0] = 1;
    assay_coverage_note(operation, classes, note);
    ck_assert(assay_coverage_add(&coverage, note));
    counts = assay_coverage_count(&coverage);
    ck_assert_int_eq(counts.classes, features + 1);
    ck_assert_int_eq(counts.pairs, features * (features - 1) / 2 + features - 1);
    ck_assert_int_eq(coverage.cases, 4);
    assay_coverage_close(&coverage);
}
END_TEST

START_TEST(a_pass_of_the_tuples_takes_all_classes_and_pairs)
{
    struct assay_campaign campaign = campaign_of(0, 5);
    campaign.operation[0] = assay_operation_find("convert");
    campaign.operations = 1;
    struct assay_coverage coverage;
    struct assay_campaign_case drawn;
    char note[ASSAY_MAX_NOTE];
    const int64_t tuples = (int64_t)assay_feature_tuples(campaign.operation[0]);
    int64_t all_classes = 1, all_pairs = 0;
    ck_assert_int_eq(assay_coverage_open(&coverage, campaign.operation[0]), ASSAY_RAN);
    for (int64_t i = 0; i < tuples; i++) {
        assay_campaign_draw(&campaign, i, &drawn);
        assay_coverage_note(drawn.operation, drawn.classes, note);
        ck_assert(assay_coverage_add(&coverage, note));
    }
    for (int i = 0; i < assay_feature_count(campaign.operation[0]); i++) {
        const int classes = assay_feature_classes(campaign.operation[0], i);
        all_pairs += classes * (all_classes - 1);
        all_classes += classes;
    }
    const struct assay_coverage_counts counts = assay_coverage_count(&coverage);
    ck_assert_int_eq(counts.all_classes, all_classes - 1);
    ck_assert_int_eq(counts.all_pairs, all_pairs);
    ck_assert_int_eq(counts.classes, counts.all_classes);
    ck_assert_int_ge(counts.pairs, counts.all_pairs * 9 / 10);
    assay_coverage_close(&coverage);
}
END_TEST

START_TEST(a_note_of_another_operation_is_no_coverage)
{
    static const char *const notes[] = { "", "0", "00000000000000000", "zz", "!!", "0 " };
    struct assay_coverage coverage;
    ck_assert_int_eq(assay_coverage_open(&coverage, assay_operation_find("convert")),
                     ASSAY_RAN);
    for (size_t i = 0; i < sizeof(notes) / sizeof(*notes); i++)
        ck_assert_msg(!assay_coverage_add(&coverage, notes[i]), "%s", notes[i]);
    char note[ASSAY_MAX_NOTE];
    const int classes[ASSAY_MAX_FEATURES] = { 0 };
    for (int i = 0; i < coverage.features; i++) {
        assay_coverage_note(assay_operation_find("convert"), classes, note);
        note[i] = '_'; /* the last letter of all */
        ck_assert(!assay_coverage_add(&coverage, note));
    }
    ck_assert_int_eq(assay_coverage_count(&coverage).classes, 0);
    assay_coverage_close(&coverage);
}
END_TEST

/* --- what is counted -------------------------------------------------------------- */

START_TEST(a_result_that_the_number_cannot_have_is_refused)
{
    const struct assay_campaign campaign = campaign_of(0, 1);
    struct assay_campaign_tally tally;
    struct assay_campaign_case drawn;
    struct assay_message message;
    ck_assert_int_eq(assay_campaign_tally_open(&tally, &campaign, &message), ASSAY_RAN);
    for (int64_t i = 0; i < 64; i++) {
        const bool is_negative = assay_campaign_negative(&campaign, i) != NULL;
        struct assay_brief right = { .status = is_negative ? ASSAY_REFUSED : ASSAY_RAN,
                                     .has_passed = true },
                           wrong = right;
        assay_campaign_draw(&campaign, i, &drawn);
        if (is_negative)
            wrong.status = ASSAY_RAN;
        else
            assay_coverage_note(drawn.operation, drawn.classes, right.note);
        ck_assert_int_eq(assay_campaign_take_brief(&tally, i, &right, &message),
                         ASSAY_RAN);
        ck_assert_int_eq(assay_campaign_take_brief(&tally, i, &wrong, &message),
                         ASSAY_REFUSED);
    }
    ck_assert_int_eq(tally.negatives, 4);
    ck_assert_int_eq(tally.accepted, 0);
    assay_campaign_tally_close(&tally);
}
END_TEST

START_TEST(failures_of_one_signature_are_one_finding)
{
    const struct assay_campaign campaign = campaign_of(0, 1);
    struct assay_campaign_tally tally;
    struct assay_message message;
    int64_t failures = 0, accepted = 0;
    ck_assert_int_eq(assay_campaign_tally_open(&tally, &campaign, &message), ASSAY_RAN);
    for (int64_t i = 0; i < 400; i++) {
        struct assay_campaign_case drawn;
        bool is_new;
        assay_campaign_draw(&campaign, i, &drawn);
        struct assay_result result = { .operation = drawn.operation,
                                       .status =
                                           drawn.negative ? ASSAY_RAN : ASSAY_CRASHED,
                                       .model_max_error_over_bound = -1,
                                       .is_decisive = true };
        snprintf(result.case_line, sizeof(result.case_line), "%s", drawn.line);
        if (!drawn.negative)
            assay_coverage_note(drawn.operation, drawn.classes, result.note);
        ck_assert_int_eq(assay_campaign_take(&tally, i, &result, &is_new, &message),
                         ASSAY_RAN);
        failures += !drawn.negative;
        accepted += drawn.negative != NULL;
    }
    int64_t cases = 0, negatives = 0;
    for (int64_t i = 0; i < tally.findings.count; i++) {
        const struct assay_campaign_finding *const finding = &tally.findings.item[i];
        struct assay_campaign_case drawn;
        assay_campaign_draw(&campaign, finding->number, &drawn);
        ck_assert_str_eq(finding->line, drawn.line);
        ck_assert(i == 0 || finding->number > finding[-1].number);
        cases += finding->cases;
        negatives += finding->is_negative;
        ck_assert_int_eq(strstr(finding->signature.text, "accepted") != NULL,
                         finding->is_negative);
    }
    ck_assert_int_eq(cases, failures + accepted);
    ck_assert_int_eq(tally.findings.count, campaign.operations + negatives);
    ck_assert_int_eq(tally.summary.broken, failures);
    ck_assert_int_eq(tally.accepted, accepted);
    assay_campaign_tally_close(&tally);
}
END_TEST

/* --- shards from the environment -------------------------------------------------- */

static void clear_environment(void)
{
    static const char *const names[] = {
        "TEST_SHARD_INDEX",       "TEST_TOTAL_SHARDS",    "SLURM_ARRAY_TASK_ID",
        "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_STEP",
        "TEST_SHARD_STATUS_FILE"
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        unsetenv(names[i]);
}

static void expect_shard(const char *text, int64_t index, int64_t count)
{
    struct assay_shard shard;
    struct assay_message message = { "" };
    const enum assay_status status = assay_shard_find(text, &shard, &message);
    ck_assert_msg(status == (count ? ASSAY_RAN : ASSAY_REFUSED), "%s: %s",
                  text ? text : "", message.text);
    if (!count) return;
    ck_assert_int_eq(shard.index, index);
    ck_assert_int_eq(shard.count, count);
}

START_TEST(a_shard_is_named_or_found_in_the_environment)
{
    static const char *const wrong[] = { "",     "1",    "4/4",   "-1/4",
                                         "1/0",  "/4",   "1/",    "x/4",
                                         "1/4x", "01/4", "1/2/3", "0/99999999999999" };
    clear_environment();
    expect_shard(NULL, 0, 1);
    expect_shard("0/1", 0, 1);
    expect_shard("3/4", 3, 4);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        expect_shard(wrong[i], 0, 0);
    setenv("SLURM_ARRAY_TASK_ID", "12", 1);
    setenv("SLURM_ARRAY_TASK_COUNT", "5", 1);
    setenv("SLURM_ARRAY_TASK_MIN", "10", 1);
    expect_shard(NULL, 2, 5);
    setenv("SLURM_ARRAY_TASK_STEP", "2", 1);
    expect_shard(NULL, 1, 5);
    setenv("SLURM_ARRAY_TASK_ID", "13", 1);
    expect_shard(NULL, 0, 0);
    setenv("TEST_TOTAL_SHARDS", "8", 1);
    expect_shard(NULL, 0, 0);
    setenv("TEST_SHARD_INDEX", "7", 1);
    expect_shard(NULL, 7, 8);
    expect_shard("1/2", 1, 2);
    clear_environment();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_permutation_has_every_number_once,
        a_permutation_of_any_size_has_no_number_twice,
        seeds_names_and_passes_give_other_permutations,
        a_number_is_the_same_case_whatever_was_drawn_before,
        another_seed_gives_other_values_to_the_same_classes,
        every_block_has_every_operation_once,
        every_shard_meets_every_operation,
        shards_share_all_numbers_out,
        one_number_in_sixteen_is_illegal,
        a_pool_has_so_many_shapes,
        what_is_illegal_is_refused_and_what_it_was_made_of_is_not,
        every_operation_has_rows_of_what_is_illegal,
        coverage_counts_classes_and_pairs_once,
        a_pass_of_the_tuples_takes_all_classes_and_pairs,
        a_note_of_another_operation_is_no_coverage,
        a_result_that_the_number_cannot_have_is_refused,
        failures_of_one_signature_are_one_finding,
        a_shard_is_named_or_found_in_the_environment,
        NULL,
    };
    return run_tests("campaign", tests);
}
