/* SPDX-License-Identifier: MIT */
/* Tests of what the attention operations have in common: vectors of every kind of data,
 * sinks, shuffled pages, knobs. */
#include "verify/operation/mla/mla_data.h"

#include "ref/format/minifloat.h"
#include "tests/harness.h"
#include "verify/data/buffers.h"
#include "verify/operation/mla/mla_numerics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { D = 576, KINDS = ASSAY_DATA_NEEDLE + 1, KEYS = 400 };

#define LOG2_E 1.4426950408889634

static const float usual_scale = 1.0f / 24;

struct codes {
    uint16_t code[D];
};

static struct codes made(enum assay_format format, enum assay_data_kind kind,
                         const char *tensor, int64_t row_key, bool is_needle,
                         float softmax_scale, int64_t count, uint64_t seed)
{
    struct codes codes;
    memset(&codes, 0xFF, sizeof(codes));
    const struct assay_mla_vector vector = { .format = format,
                                             .element = codes.code,
                                             .count = count,
                                             .row_key = row_key,
                                             .is_key = tensor[0] == 'k',
                                             .is_needle = is_needle,
                                             .softmax_scale = softmax_scale };
    assay_mla_fill_vector(&vector, kind, seed, tensor);
    return codes;
}

static struct codes query(enum assay_data_kind kind, int64_t row)
{
    return made(ASSAY_BF16, kind, "q", row, false, usual_scale, D, 1);
}

static struct codes key(enum assay_data_kind kind, int64_t request, int64_t token)
{
    return made(ASSAY_BF16, kind, "k_cache", assay_mla_row_key(request, token), false,
                usual_scale, D, 1);
}

static double value(enum assay_format format, uint16_t code)
{
    return assay_minifloat_decode(assay_minifloat(format), code);
}

static double dot(enum assay_format format, const struct codes *a, const struct codes *b,
                  int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += value(format, a->code[i]) * value(format, b->code[i]);
    return sum;
}

/* --- vectors ---------------------------------------------------------------------- */

START_TEST(scores_spread_over_several_units_of_log_2)
{
    static const struct {
        enum assay_data_kind kind;
        double least, most; /* standard deviation */
    } rows[] = {
        { ASSAY_DATA_NORMAL, 2, 4 },     { ASSAY_DATA_UNIFORM, 2, 4 },
        { ASSAY_DATA_WIDE, 1, 8 },       { ASSAY_DATA_OUTLIER, 1, 4 },
        { ASSAY_DATA_CANCEL, 1.5, 5 },   { ASSAY_DATA_SUBNORMAL, 1.5, 6 },
        { ASSAY_DATA_POSITIVE, 0.8, 4 }, { ASSAY_DATA_SPECIAL, 2, 4 },
    };
    for (int f16 = 0; f16 < 2; f16++)
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            const enum assay_format format = f16 ? ASSAY_F16 : ASSAY_BF16;
            double sum = 0, squares = 0;
            const struct codes q =
                made(format, rows[i].kind, "q", 0, false, usual_scale, D, 1);
            for (int64_t token = 0; token < KEYS; token++) {
                const struct codes k =
                    made(format, rows[i].kind, "k_cache",
                         assay_mla_row_key(0, token + 64), false, usual_scale, D, 1);
                const double score =
                    dot(format, &q, &k, D) * (double)usual_scale * LOG2_E;
                sum += score;
                squares += score * score;
            }
            const double deviation = sqrt(squares / KEYS - sum / KEYS * (sum / KEYS));
            ck_assert_msg(deviation >= rows[i].least && deviation <= rows[i].most,
                          "%s, f16 %d: %g", assay_data_kinds[rows[i].kind].name, f16,
                          deviation);
        }
}
END_TEST

START_TEST(a_needle_beats_all_other_keys)
{
    static const float scales[] = { 0.0416666679f, 0.5f, 10, 0.001f };
    for (int variant = 0; variant < 16; variant++) {
        const enum assay_format format = variant & 1 ? ASSAY_F16 : ASSAY_BF16;
        const int64_t count = variant & 2 ? 512 : 576;
        const float scale = scales[variant >> 2];
        double least_needle = HUGE_VAL, most = 0, most_other = -HUGE_VAL;
        for (int64_t row = 0; row < 40; row++) {
            const struct codes q =
                made(format, ASSAY_DATA_NEEDLE, "q", row, false, scale, count, 3);
            for (int64_t token = 0; token < 100; token++)
                for (int needle = 0; needle < 2; needle++) {
                    const struct codes k = made(format, ASSAY_DATA_NEEDLE, "k_cache",
                                                token, needle == 1, scale, count, 3);
                    const double score =
                        dot(format, &q, &k, count) * (double)scale * LOG2_E;
                    if (needle)
                        least_needle = fmin(least_needle, score);
                    else
                        most_other = fmax(most_other, score);
                    most = fmax(most, fabs(score));
                }
        }
        ck_assert_msg(least_needle - most_other > 160, "variant %d: %g over %g", variant,
                      least_needle, most_other);
        ck_assert_msg(most < 1024, "variant %d: %g", variant, most);
    }
}
END_TEST

START_TEST(a_needle_is_one_of_the_tokens_whatever_their_number)
{
    int64_t sum = 0;
    for (int64_t tokens = 1; tokens < 2000; tokens++) {
        const int64_t needle = assay_mla_needle((uint64_t)tokens, 3, tokens);
        ck_assert(needle >= 0 && needle < tokens);
        sum += needle * 2000 / tokens;
    }
    ck_assert(sum / 2000 > 900 && sum / 2000 < 1100);
}
END_TEST

START_TEST(exact_and_tied_queries_are_zero)
{
    const enum assay_data_kind kinds[] = { ASSAY_DATA_EXACT, ASSAY_DATA_TIES };
    for (int64_t row = 0; row < 100; row++)
        for (int i = 0; i < 2; i++) {
            const struct codes q = query(kinds[i], row);
            for (int at = 0; at < D; at++)
                ck_assert_uint_eq(q.code[at], 0);
        }
}
END_TEST

START_TEST(exact_keys_are_all_integers_up_to_15)
{
    int seen[31] = { 0 };
    for (int64_t token = 0; token < 20; token++) {
        const struct codes k = key(ASSAY_DATA_EXACT, 0, token);
        for (int at = 0; at < D; at++) {
            const double v = value(ASSAY_BF16, k.code[at]);
            ck_assert(v == rint(v) && fabs(v) <= 15);
            seen[(int)v + 15]++;
        }
    }
    for (int i = 0; i < 31; i++)
        ck_assert_int_gt(seen[i], 200);
}
END_TEST

START_TEST(tied_keys_are_neighbouring_codes_by_the_parity_of_their_token)
{
    int odd = 0;
    const struct codes even = key(ASSAY_DATA_TIES, 2, 0),
                       other = key(ASSAY_DATA_TIES, 3, 0);
    for (int64_t token = 0; token < 10; token++) {
        const struct codes k = key(ASSAY_DATA_TIES, 2, token);
        for (int at = 0; at < D; at++)
            ck_assert_uint_eq(k.code[at], even.code[at] + (token & 1));
    }
    for (int at = 0; at < D; at++)
        odd += even.code[at] & 1;
    ck_assert(odd > D / 3 && odd < 2 * D / 3);
    ck_assert(memcmp(&even, &other, sizeof(even)) != 0);
}
END_TEST

static bool is_odd_value(uint16_t code)
{
    const double v = value(ASSAY_BF16, code);
    return !isfinite(v) || v == 0 || fabs(v) < 1e-30 || fabs(v) > 1e30;
}

static int odd_values(const struct codes *codes, bool *has_nan)
{
    int count = 0;
    for (int at = 0; at < D; at++) {
        count += is_odd_value(codes->code[at]);
        *has_nan |= isnan(value(ASSAY_BF16, codes->code[at]));
    }
    return count;
}

START_TEST(special_values_are_few_and_spare_row_0)
{
    int queries = 0, keys[2] = { 0 };
    bool has_nan = false, even_has_nan = false, odd_has_nan = false;
    for (int64_t row = 0; row < 1000; row++) {
        const struct codes q = query(ASSAY_DATA_SPECIAL, row);
        const int count = odd_values(&q, &has_nan);
        ck_assert_int_le(count, row > 0);
        queries += count;
    }
    ck_assert(queries > 90 && queries < 160 && has_nan);
    for (int64_t request = 0; request < 100; request++) {
        int in_request = 0;
        for (int64_t token = 0; token < 200; token++) {
            const struct codes k = key(ASSAY_DATA_SPECIAL, request, token);
            const int count = odd_values(&k, request % 2 ? &odd_has_nan : &even_has_nan);
            ck_assert(count == 0 || (token > 0 && token < 64));
            in_request += count;
        }
        ck_assert_int_eq(in_request, 1);
        keys[request % 2]++;
    }
    ck_assert(odd_has_nan && !even_has_nan);
}
END_TEST

START_TEST(row_0_is_ordinary_whatever_the_seed)
{
    for (uint64_t seed = 0; seed < 100; seed++) {
        bool has_nan = false;
        const struct codes special =
            made(ASSAY_BF16, ASSAY_DATA_SPECIAL, "q", 0, false, usual_scale, D, seed);
        const struct codes small =
            made(ASSAY_BF16, ASSAY_DATA_SUBNORMAL, "q", 0, false, usual_scale, D, seed);
        ck_assert_int_eq(odd_values(&special, &has_nan), 0);
        for (int at = 0; at < D; at++)
            ck_assert_uint_ne(small.code[at] & 0x7F80, 0);
    }
}
END_TEST

START_TEST(cancelling_products_come_in_pairs)
{
    int kept = 0;
    const struct codes q = query(ASSAY_DATA_CANCEL, 5);
    const struct codes k = key(ASSAY_DATA_CANCEL, 0, 5);
    for (int at = 0; at < D; at += 2) {
        ck_assert_uint_eq(k.code[at], k.code[at + 1]);
        ck_assert_uint_eq((q.code[at] ^ q.code[at + 1]) & 0x7FFF, 0);
        kept += q.code[at] == q.code[at + 1];
    }
    ck_assert(kept > 15 && kept < 60);
    ck_assert_uint_eq(q.code[0], q.code[1]);
}
END_TEST

START_TEST(positive_values_are_positive_and_subnormal_data_have_subnormals)
{
    int subnormal_keys = 0, subnormal_queries = 0;
    for (int64_t row = 0; row < 200; row++) {
        const struct codes q = query(ASSAY_DATA_POSITIVE, row);
        const struct codes k = key(ASSAY_DATA_POSITIVE, 0, row);
        for (int at = 0; at < D; at++)
            ck_assert(q.code[at] >> 15 == 0 && k.code[at] >> 15 == 0);
        const struct codes small = key(ASSAY_DATA_SUBNORMAL, 0, row);
        for (int at = 0; at < D; at++)
            subnormal_keys += (small.code[at] & 0x7F80) == 0 && small.code[at] & 0x7F;
        const struct codes small_query = query(ASSAY_DATA_SUBNORMAL, row);
        int in_row = 0;
        for (int at = 0; at < D; at++)
            in_row += (small_query.code[at] & 0x7F80) == 0;
        ck_assert(in_row == 0 || (in_row == D && row > 0));
        subnormal_queries += in_row == D;
    }
    ck_assert(subnormal_keys > 200 * D / 4 && subnormal_keys < 200 * D / 2);
    ck_assert(subnormal_queries > 30 && subnormal_queries < 75);
}
END_TEST

START_TEST(a_shorter_vector_is_the_beginning_of_a_longer_one)
{
    for (int kind = 0; kind < KINDS; kind++) {
        if (kind == ASSAY_DATA_NEEDLE) continue;
        for (int64_t row = 0; row < 100; row++)
            for (int is_key = 0; is_key < 2; is_key++) {
                const struct codes longer =
                    made(ASSAY_BF16, (enum assay_data_kind)kind, is_key ? "kv" : "q", row,
                         false, usual_scale, 576, 1);
                const struct codes shorter =
                    made(ASSAY_BF16, (enum assay_data_kind)kind, is_key ? "kv" : "q", row,
                         false, usual_scale, 512, 1);
                ck_assert(memcmp(&longer, &shorter, 512 * sizeof(uint16_t)) == 0);
                for (int at = 512; at < D; at++)
                    ck_assert_uint_eq(shorter.code[at], 0xFFFF);
            }
    }
}
END_TEST

/* Frozen with data version 1: generated inputs never change. */
START_TEST(generated_vectors_are_the_same_everywhere)
{
    static const uint64_t frozen[KINDS] = {
        0xfea42514d578973e, 0x863d08c6710e1c1f, 0x5f8c641a53ea9d93, 0xf527530880fb4a5a,
        0x3b36b792631bcd98, 0x27f803fbf89240be, 0x96375af65222b1e1, 0xe4024c80a03b8e0c,
        0xeb087936ffeff76a, 0xdbddd65f0b4a2368, 0xaf2549f5cd5f05c9, 0x4155b1234e43893e,
        0x6e045980164f7ae1
    };
    for (int kind = 0; kind < KINDS; kind++) {
        static uint16_t codes[2][2][70][D];
        for (int f16 = 0; f16 < 2; f16++)
            for (int is_key = 0; is_key < 2; is_key++)
                for (int64_t row = 0; row < 70; row++) {
                    const struct codes one =
                        made(f16 ? ASSAY_F16 : ASSAY_BF16, (enum assay_data_kind)kind,
                             is_key ? "k_cache" : "q", assay_mla_row_key(row % 3, row),
                             row == 7, usual_scale, D, 7);
                    memcpy(codes[f16][is_key][row], one.code, sizeof(one.code));
                }
        const struct assay_tensor tensor = { .format = ASSAY_BF16,
                                             .rank = 1,
                                             .shape = { sizeof(codes) / 2 },
                                             .stride = { 1 },
                                             .data = codes };
        const uint64_t hash = assay_tensor_hash(&tensor);
        ck_assert_msg(hash == frozen[kind], "%s: 0x%016llx", assay_data_kinds[kind].name,
                      (unsigned long long)hash);
    }
}
END_TEST

/* --- sinks, pages, scale ---------------------------------------------------------- */

START_TEST(sinks_are_often_infinite_and_never_dilute_exact_results)
{
    for (int kind = 0; kind < KINDS; kind++) {
        float sinks[1000], fewer[10];
        struct assay_tensor tensor = { .name = "attn_sink",
                                       .format = ASSAY_F32,
                                       .rank = 1,
                                       .shape = { 1000 },
                                       .stride = { 1 },
                                       .data = sinks };
        assay_mla_fill_sink(&tensor, (enum assay_data_kind)kind, 4);
        int plus = 0, minus = 0;
        for (int i = 0; i < 1000; i++) {
            ck_assert(isinf(sinks[i]) || fabsf(sinks[i]) < 4);
            plus += sinks[i] == INFINITY;
            minus += sinks[i] == -INFINITY;
        }
        const bool is_neutral = kind == ASSAY_DATA_EXACT || kind == ASSAY_DATA_NEEDLE;
        if (kind == ASSAY_DATA_ZERO) {
            for (int i = 0; i < 1000; i++)
                ck_assert(sinks[i] == 0 && !signbit(sinks[i]));
            continue;
        }
        ck_assert_msg(is_neutral ? minus == 1000
                                 : plus > 250 && plus < 350 && minus > 250 && minus < 350,
                      "%d %d", plus, minus);
        tensor.shape[0] = 10;
        tensor.data = fewer;
        assay_mla_fill_sink(&tensor, (enum assay_data_kind)kind, 4);
        ck_assert(memcmp(sinks, fewer, sizeof(fewer)) == 0);
    }
}
END_TEST

START_TEST(a_shuffle_is_a_permutation)
{
    static int32_t order[5000];
    static uint8_t seen[5000];
    int64_t fixed = 0;
    for (int count = 1; count <= 5000; count += count < 70 ? 1 : 493) {
        assay_mla_shuffle(9, "block_table", count, order);
        memset(seen, 0, sizeof(seen));
        for (int i = 0; i < count; i++) {
            ck_assert(order[i] >= 0 && order[i] < count && !seen[order[i]]);
            ck_assert_int_eq(order[i], assay_mla_shuffled(9, "block_table", count, i));
            ck_assert_int_eq(i, assay_mla_unshuffled(9, "block_table", count, order[i]));
            seen[order[i]] = 1;
            fixed += count > 1000 && order[i] == i;
        }
    }
    ck_assert_int_lt(fixed, 40);
    int same = 0;
    for (int i = 0; i < 1000; i++)
        same +=
            assay_mla_shuffled(1, "a", 1000, i) == assay_mla_shuffled(2, "a", 1000, i);
    ck_assert_int_lt(same, 10);
    const int64_t most = INT32_MAX;
    const int64_t place = assay_mla_shuffled(1, "a", most, most - 1);
    ck_assert(place < most);
    ck_assert_int_eq(assay_mla_unshuffled(1, "a", most, place), most - 1);
}
END_TEST

/* --- numerics --------------------------------------------------------------------- */

static size_t longest_choice(const struct assay_knob *knob)
{
    size_t longest = 2;
    for (const struct assay_choice *choice = knob->choices; choice && choice->name;
         choice++)
        longest = strlen(choice->name) > longest ? strlen(choice->name) : longest;
    return longest;
}

START_TEST(every_setting_of_all_knobs_fits_the_text_of_numerics)
{
    size_t length = strlen("flashmla-sparse-prefill");
    size_t offsets[64], count = 0;
    for (const struct assay_knob *knob = assay_mla_knobs; knob->name; knob++) {
        length += strlen(knob->name) + longest_choice(knob) + 2;
        for (size_t i = 0; i < count; i++)
            ck_assert_uint_ne(offsets[i], knob->offset);
        offsets[count++] = knob->offset;
    }
    ck_assert_uint_lt(length, ASSAY_MAX_NUMERICS_TEXT);
    /* Every int of the numerics has its knob. */
    ck_assert_uint_eq(count * sizeof(int), offsetof(struct assay_mla_numerics, combine) +
                                               sizeof(struct assay_mla_combine_numerics));
}
END_TEST

START_TEST(knobs_that_contradict_one_another_are_refused)
{
    struct assay_message message = { "" };
    struct assay_mla_numerics numerics = assay_mla_flashmla_dense;
    ck_assert(assay_mla_is_measured(&numerics));
    ck_assert_int_eq(assay_mla_check_numerics(NULL, &numerics, &message), ASSAY_RAN);
    numerics.schedule = ASSAY_MLA_PLAIN;
    ck_assert_int_eq(assay_mla_check_numerics(NULL, &numerics, &message), ASSAY_REFUSED);
    ck_assert_msg(strstr(message.text, "use row_sum=one-lane"), "%s", message.text);
    numerics.row_sum = ASSAY_MLA_SUM_ONE_LANE;
    ck_assert_int_eq(assay_mla_check_numerics(NULL, &numerics, &message), ASSAY_RAN);
    numerics.align_bits = 20;
    ck_assert_int_eq(assay_mla_check_numerics(NULL, &numerics, &message), ASSAY_RAN);
    ck_assert(!assay_mla_is_measured(&numerics));
    numerics.unit = ASSAY_MLA_FMA;
    ck_assert_int_eq(assay_mla_check_numerics(NULL, &numerics, &message), ASSAY_REFUSED);
    ck_assert_msg(strstr(message.text, "use unit=tensor-core"), "%s", message.text);
    const struct assay_mla_numerics *const named[] = { &assay_mla_flashmla_sparse_decode,
                                                       &assay_mla_flashmla_sparse_prefill,
                                                       &assay_mla_flash,
                                                       &assay_mla_naive };
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(assay_mla_check_numerics(NULL, named[i], &message), ASSAY_RAN);
        ck_assert_int_eq(assay_mla_is_measured(named[i]), i < 2);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        scores_spread_over_several_units_of_log_2,
        a_needle_beats_all_other_keys,
        a_needle_is_one_of_the_tokens_whatever_their_number,
        exact_and_tied_queries_are_zero,
        exact_keys_are_all_integers_up_to_15,
        tied_keys_are_neighbouring_codes_by_the_parity_of_their_token,
        special_values_are_few_and_spare_row_0,
        row_0_is_ordinary_whatever_the_seed,
        cancelling_products_come_in_pairs,
        positive_values_are_positive_and_subnormal_data_have_subnormals,
        a_shorter_vector_is_the_beginning_of_a_longer_one,
        generated_vectors_are_the_same_everywhere,
        sinks_are_often_infinite_and_never_dilute_exact_results,
        a_shuffle_is_a_permutation,
        every_setting_of_all_knobs_fits_the_text_of_numerics,
        knobs_that_contradict_one_another_are_refused,
        NULL,
    };
    return run_tests("mla_data", tests);
}
