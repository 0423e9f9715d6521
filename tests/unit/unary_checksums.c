/* SPDX-License-Identifier: MIT */
/* Every modelled one-operand function on all 2^32 inputs, against checksums recorded on
 * an H200. ASSAY_CHUNKS=N computes N of the 256 chunks (default all). */
#include "tests/harness.h"
#include "tests/unit/unary_functions.h"

#include <stdio.h>

enum { CHUNKS = 256, CHUNK_BITS = 24 };

static uint64_t checksums[UNARY_FUNCTIONS][CHUNKS];
static int recorded_chunks[UNARY_FUNCTIONS];

static void read_checksums(void)
{
    char path[4096], line[128];
    snprintf(path, sizeof(path), "%s/units/unary_checksums.csv", corpus_folder());
    FILE *const file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s cannot be opened", path);
    while (fgets(line, sizeof(line), file)) {
        const int function = unary_function_find(line, strcspn(line, ","));
        if (function < 0) continue;
        unsigned chunk;
        unsigned long long checksum;
        ck_assert_int_eq(sscanf(strchr(line, ','), ",%u,%llx", &chunk, &checksum), 2);
        ck_assert_uint_lt(chunk, CHUNKS);
        checksums[function][chunk] = checksum;
        recorded_chunks[function]++;
    }
    fclose(file);
}

/* Steele, Lea and Flood's finaliser after its increment. */
static uint64_t splitmix64(uint64_t x)
{
    x += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

static uint64_t checksum_of_chunk(const struct unary_function *function, uint32_t chunk)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < 1u << CHUNK_BITS; i++) {
        const uint32_t input = chunk << CHUNK_BITS | i;
        sum += splitmix64((uint64_t)input << 32 | unary_apply(function, input));
    }
    return sum;
}

static int chunk_step(void)
{
    const char *const text = getenv("ASSAY_CHUNKS");
    const int chunks = text ? atoi(text) : CHUNKS;
    ck_assert_msg(chunks >= 1 && chunks <= CHUNKS,
                  "ASSAY_CHUNKS is \"%s\", but must be 1 to %d", text, CHUNKS);
    return CHUNKS / chunks;
}

START_TEST(all_inputs_give_the_recorded_checksums)
{
    const struct unary_function *const function = &unary_functions[_i];
    const int step = chunk_step();
    int wrong = 0, first_wrong = CHUNKS;
    read_checksums();
    ck_assert_int_eq(recorded_chunks[_i], CHUNKS);

#pragma omp parallel for schedule(dynamic) reduction(+ : wrong)                         \
    reduction(min : first_wrong)
    for (int chunk = 0; chunk < CHUNKS; chunk += step) {
        if (checksum_of_chunk(function, (uint32_t)chunk) == checksums[_i][chunk])
            continue;
        wrong++;
        first_wrong = chunk < first_wrong ? chunk : first_wrong;
    }
    ck_assert_msg(wrong == 0, "%s: %d of %d chunks differ, the first is %d",
                  function->name, wrong, (CHUNKS + step - 1) / step, first_wrong);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("unary_checksums");
    TCase *const group = tcase_create("unary_checksums");
    tcase_set_timeout(group, 600);
    tcase_add_loop_test(group, all_inputs_give_the_recorded_checksums, 0,
                        UNARY_FUNCTIONS);
    suite_add_tcase(suite, group);

    SRunner *const runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
