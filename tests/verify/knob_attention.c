/* SPDX-License-Identifier: MIT */
/* The search for settings that reproduce the bits of attention. */
#include "tests/harness.h"
#include "tests/verify/knob_variants.h"

START_TEST(every_variant_of_attention_is_found_with_all_that_equals_it)
{
    check_all_variants("mla_dense_decode b=1 h_q=1 s_k=70 seed=3", 40, 12);
    check_all_variants("mla_combine b=2 h_q=4 splits=3 seed=3", 1, 2);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_variant_of_attention_is_found_with_all_that_equals_it,
        NULL,
    };
    return run_tests("knob_attention", tests);
}
