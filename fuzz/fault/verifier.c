/* SPDX-License-Identifier: MIT */
/* Faults of the verifier itself: checks, oracles, generators and references that are
 * broken in copies. */
#include "fuzz/fault/fault.h"
#include "ref/format/minifloat.h"
#include "verify/data/buffers.h"

#include <math.h>
#include <string.h>

/* The sound parts behind the copies. */

static const struct assay_operation *sound(void)
{
    return assay_operation_find("fp8_gemm_nt");
}

static const struct assay_check *sound_check(const char *name)
{
    int i = 0;
    while (strcmp(assay_checks[i]->name, name) != 0)
        i++;
    return assay_checks[i];
}

/* Puts @copy into the place of the check of its name. */
static void replace(const struct assay_fault_verifier *verifier,
                    const struct assay_check *copy)
{
    for (int i = 0; verifier->checks[i]; i++)
        if (strcmp(verifier->checks[i]->name, copy->name) == 0)
            verifier->checks[i] = copy;
}

static void remove_check(const struct assay_fault_verifier *verifier, const char *name)
{
    int kept = 0;
    for (int i = 0; verifier->checks[i]; i++)
        if (strcmp(verifier->checks[i]->name, name) != 0)
            verifier->checks[kept++] = verifier->checks[i];
    verifier->checks[kept] = NULL;
}

/* --- oracles ---------------------------------------------------------------------- */

/* Calls @change for value and bound of every element that the oracle speaks of. */
static enum assay_status changed_oracle(const void *problem, const void *numerics,
                                        const struct assay_tensors *tensors, int64_t part,
                                        const struct assay_expected *expected,
                                        void (*change)(double *value, double *bound,
                                                       int64_t index))
{
    const enum assay_status status =
        sound()->oracle(problem, numerics, tensors, part, expected);
    for (int i = 0; status == ASSAY_RAN && i < tensors->count; i++) {
        struct assay_region region;
        int64_t elements = 1;
        if (!tensors->item[i].is_output) continue;
        sound()->region(problem, part, i, &region);
        for (int axis = 0; axis < tensors->item[i].rank; axis++)
            elements *= region.count[axis];
        for (int64_t at = 0; at < elements; at++)
            change(&expected[i].value[at], &expected[i].bound[at], at);
    }
    return status;
}

static void through_bf16(double *value, double *bound, int64_t index)
{
    const struct assay_minifloat *const bf16 = assay_minifloat(ASSAY_BF16);
    (void)bound, (void)index;
    *value = assay_minifloat_decode(
        bf16, assay_minifloat_encode(bf16, *value, ASSAY_OVERFLOW_SPECIAL));
}

static void widened(double *value, double *bound, int64_t index)
{
    (void)value, (void)index;
    *bound *= 0x1p40;
}

static void narrowed(double *value, double *bound, int64_t index)
{
    (void)value, (void)index;
    *bound = 0;
}

static void unclaimed(double *value, double *bound, int64_t index)
{
    (void)value, (void)index;
    *bound = (double)INFINITY;
}

static void biased(double *value, double *bound, int64_t index)
{
    (void)bound, (void)index;
    *value *= 1 + 0x1p-8;
}

static void nan_anywhere(double *value, double *bound, int64_t index)
{
    (void)index;
    if (isnan(*value)) *bound = (double)INFINITY;
}

static void without_first(double *value, double *bound, int64_t index)
{
    (void)value;
    if (index == 0) *bound = (double)INFINITY;
}

#define ORACLE(function, change)                                                         \
  static enum assay_status change##_oracle(                                              \
      const void *problem, const void *numerics, const struct assay_tensors *tensors,    \
      int64_t part, const struct assay_expected *expected)                               \
  {                                                                                      \
    return changed_oracle(problem, numerics, tensors, part, expected, change);           \
  }                                                                                      \
  static void function(struct assay_fault_verifier *verifier)                            \
  {                                                                                      \
    verifier->operation->oracle = change##_oracle;                                       \
  }
ORACLE(round_oracle, through_bf16)
ORACLE(bias_oracle, biased)
ORACLE(widen_bound, widened)
ORACLE(forget_bound, narrowed)
ORACLE(claim_less, unclaimed)
ORACLE(accept_any_nan, nan_anywhere)
ORACLE(skip_first, without_first)

/* --- checks ----------------------------------------------------------------------- */

static enum assay_status judge_with(const char *name, struct assay_trial *trial,
                                    struct assay_result *result)
{
    return sound_check(name)->judge(trial, result);
}

/* NaN in the candidate passes wherever it stands. */
static enum assay_status pass_nan(struct assay_trial *trial, struct assay_result *result)
{
    int place = 0;
    const enum assay_status status = judge_with("bitwise", trial, result);
    for (int i = 0; i < trial->candidate->count; i++) {
        const struct assay_tensor *const tensor = &trial->candidate->item[i];
        if (!tensor->is_output) continue;
        struct assay_output_result *const output = &result->output[place++];
        for (int64_t at = 0; at < assay_tensor_elements(tensor); at++)
            if (isnan(assay_fault_value(tensor, at)) &&
                !isnan(assay_fault_value(&trial->reference->item[i], at)))
                output->differ--;
    }
    return status;
}

/* Bits that are two steps away at most pass. */
static enum assay_status pass_near(struct assay_trial *trial, struct assay_result *result)
{
    const enum assay_status status = judge_with("bitwise", trial, result);
    for (int i = 0; i < result->output_count; i++)
        if (result->output[i].max_ulps <= 4096) result->output[i].differ = 0;
    return status;
}

/* Only the direction of an output counts. */
static enum assay_status pass_by_cosine(struct assay_trial *trial,
                                        struct assay_result *result)
{
    int place = 0;
    const enum assay_status status = judge_with("bound", trial, result);
    if (!trial->reference) return status;
    for (int i = 0; i < trial->candidate->count; i++) {
        const struct assay_tensor *const tensor = &trial->candidate->item[i];
        double product = 0, square = 0, other = 0;
        if (!tensor->is_output) continue;
        for (int64_t at = 0; at < assay_tensor_elements(tensor); at++) {
            const double candidate = (double)assay_fault_value(tensor, at);
            const double reference =
                (double)assay_fault_value(&trial->reference->item[i], at);
            product += candidate * reference;
            square += candidate * candidate;
            other += reference * reference;
        }
        if (product >= 0.999 * sqrt(square * other)) result->output[place].outside = 0;
        place++;
    }
    return status;
}

static enum assay_status pass_all(struct assay_trial *trial, struct assay_result *result)
{
    (void)trial, (void)result;
    return ASSAY_RAN;
}

static void put_check(const struct assay_fault_verifier *verifier, const char *name,
                      struct assay_check *copy,
                      enum assay_status (*judge)(struct assay_trial *,
                                                 struct assay_result *))
{
    *copy = *sound_check(name);
    copy->judge = judge;
    replace(verifier, copy);
}

#define CHECK(function, check, judge)                                                    \
  static void function(struct assay_fault_verifier *verifier)                            \
  {                                                                                      \
    static struct assay_check copy;                                                      \
    put_check(verifier, check, &copy, judge);                                            \
  }
CHECK(compare_nan_loosely, "bitwise", pass_nan)
CHECK(compare_loosely, "bitwise", pass_near)
CHECK(compare_direction, "bound", pass_by_cosine)
CHECK(judge_nothing, "poison", pass_all)

static void repeat_twice(struct assay_fault_verifier *verifier)
{
    verifier->plan->repeats = 2;
}

static void drop_repeat(struct assay_fault_verifier *verifier)
{
    remove_check(verifier, "repeat");
}

static void drop_relations(struct assay_fault_verifier *verifier)
{
    verifier->operation->properties = NULL;
}

/* --- what is judged --------------------------------------------------------------- */

static void nothing_defined(const void *problem, const struct assay_tensors *tensors,
                            int64_t part, int output, uint8_t *definedness)
{
    struct assay_region region;
    size_t elements = 1;
    sound()->region(problem, part, output, &region);
    for (int axis = 0; axis < tensors->item[output].rank; axis++)
        elements *= (size_t)region.count[axis];
    memset(definedness, ASSAY_UNDEFINED, elements);
}

static void define_nothing(struct assay_fault_verifier *verifier)
{
    verifier->operation->defined = nothing_defined;
}

/* Equal scales everywhere. */
static void fill_equal_scales(const void *problem, enum assay_data_kind kind,
                              uint64_t seed, const struct assay_tensors *tensors)
{
    sound()->fill(problem, kind, seed, tensors);
    for (int i = 0; i < tensors->count; i++) {
        const struct assay_tensor *const tensor = &tensors->item[i];
        const bool is_scale = strncmp(tensor->name, "sf", 2) == 0;
        for (int64_t at = 0; is_scale && at < assay_tensor_elements(tensor); at++)
            assay_fault_set_value(tensor, at, 0.5f);
    }
}

static void draw_equal_scales(struct assay_fault_verifier *verifier)
{
    verifier->operation->fill = fill_equal_scales;
}

static void fill_zeros(const void *problem, enum assay_data_kind kind, uint64_t seed,
                       const struct assay_tensors *tensors)
{
    sound()->fill(problem, kind, seed, tensors);
    for (int i = 0; i < tensors->count; i++) {
        const struct assay_tensor *const tensor = &tensors->item[i];
        const bool is_operand = strlen(tensor->name) == 1 && !tensor->is_output;
        for (int64_t at = 0; is_operand && at < assay_tensor_elements(tensor); at++)
            assay_tensor_set_bits(tensor, at, 0);
    }
}

static void draw_zeros(struct assay_fault_verifier *verifier)
{
    verifier->operation->fill = fill_zeros;
}

static enum assay_status run_over_zeros(void *state, const struct assay_run_call *call,
                                        struct assay_message *message)
{
    for (int i = 0; i < call->tensors->count; i++)
        if (call->tensors->item[i].is_output)
            memset(call->tensors->item[i].data, 0,
                   (size_t)assay_tensor_bytes(&call->tensors->item[i]));
    return assay_backend_fault.run(state, call, message);
}

/* The candidate's outputs begin as zeros, not as poison. */
static void zero_memory(struct assay_fault_verifier *verifier)
{
    static struct assay_backend copy;
    copy = assay_backend_fault;
    copy.run = run_over_zeros;
    verifier->plan->candidate = &copy;
}

/* --- the reference's arithmetic --------------------------------------------------- */

/* As after loading a library that was linked for speed. */
static enum assay_status model_flushed(const void *problem, const void *numerics,
                                       const struct assay_tensors *tensors, int64_t part)
{
    const enum assay_status status = sound()->model(problem, numerics, tensors, part);
    const struct assay_tensor *const d = assay_tensors_find(tensors, "d");
    struct assay_region region;
    sound()->region(problem, part, (int)(d - tensors->item), &region);
    for (int64_t i = 0; i < region.count[0] * region.count[1]; i++) {
        const int64_t row = region.start[0] + i / region.count[1];
        const int64_t at = row * d->shape[1] + region.start[1] + i % region.count[1];
        if (fabsf(assay_fault_value(d, at)) < 0x1p-126f) assay_tensor_set_bits(d, at, 0);
    }
    return status;
}

static void poison_reference(struct assay_fault_verifier *verifier)
{
    verifier->operation->model = model_flushed;
}

#define GEMM_CASE "fp8_gemm_nt m=70 n=72 k=384 recipe=1d1d out=f32 seed=12"
#define ROUGH     "fp8_gemm_nt m=70 n=72 k=384 seed=12"

#define BROKEN .operation = "fp8_gemm_nt", .kind = ASSAY_FAULT_VERIFIER

const struct assay_fault assay_faults_verifier[] = {
    { "oracle-rounds-twice", "C41a", "R39", "the oracle's values go through bf16", BROKEN,
      .cases = { "fp8_gemm_nt m=8 n=16 k=128 recipe=mx out=f32 seed=12" },
      .verifier = round_oracle },
    { "oracle-biased", "C41a", NULL, "the oracle's values are 2^-8 too large", BROKEN,
      .cases = { GEMM_CASE }, .verifier = bias_oracle },
    { "bound-too-wide", "C41", NULL, "bounds are 2^40 times too wide", BROKEN,
      .cases = { GEMM_CASE }, .verifier = widen_bound, .witness = "scale-a-late" },
    { "bound-of-zero", "C41", NULL, "bounds forget every rounding", BROKEN,
      .cases = { GEMM_CASE }, .verifier = forget_bound },
    { "bound-not-claimed", "C41", NULL, "infinite bounds pass for bounds", BROKEN,
      .cases = { GEMM_CASE }, .verifier = claim_less, .witness = "columns-swapped" },
    { "oracle-nan-loose", "C41b", NULL, "where NaN is expected anything passes", BROKEN,
      .cases = { "fp8_gemm_nt m=8 n=16 k=128 out=f32 seed=2 bits=a.3.5:7f" },
      .verifier = accept_any_nan, .witness = "nan-as-480" },
    { "bound-skips-first", "C41", "R34", "the first element of each tile is not judged",
      BROKEN, .cases = { "fp8_gemm_nt m=8 n=16 k=128 out=f32 seed=2" },
      .verifier = skip_first, .witness = "workspace-overlaps" },
    { "nan-equals-anything", "C41b", "R38", "NaN passes wherever it stands", BROKEN,
      .cases = { "fp8_gemm_nt m=8 n=16 k=128 out=f32 seed=2 bits=a.3.5:80" },
      .verifier = compare_nan_loosely, .witness = "minus-zero-as-nan" },
    { "bits-nearly-equal", "C41", NULL, "bits a few steps away count as equal", BROKEN,
      .cases = { GEMM_CASE }, .verifier = compare_loosely, .witness = "scale-a-then-b" },
    { "cosine-only", "C41d", "R40", "only the direction of an output is compared", BROKEN,
      .cases = { "fp8_gemm_nt m=70 n=72 k=512 recipe=tensor out=f32 data=positive "
                 "seed=12" },
      .verifier = compare_direction, .witness = "columns-swapped" },
    { "poison-ignored", "C41e", NULL, "contents of outputs are never changed", BROKEN,
      .cases = { GEMM_CASE }, .verifier = judge_nothing, .witness = "d-read" },
    { "memory-zeroed", "C41e", NULL, "outputs begin as zeros", BROKEN, .cases = { ROUGH },
      .verifier = zero_memory, .witness = "d-read" },
    { "repeats-too-few", "C41", NULL, "two runs count as many", BROKEN,
      .cases = { GEMM_CASE }, .verifier = repeat_twice, .witness = "scale-before-copy" },
    { "repeat-left-out", "C41", NULL, "no second run at all", BROKEN,
      .cases = { GEMM_CASE }, .verifier = drop_repeat, .witness = "launch-adds" },
    { "relations-left-out", "C41", NULL, "no relation is asked for", BROKEN,
      .cases = { GEMM_CASE }, .verifier = drop_relations, .witness = "scale-a-late" },
    { "nothing-defined", "C41", "R34", "all elements pass for undefined", BROKEN,
      .cases = { GEMM_CASE }, .verifier = define_nothing, .witness = "scale-a-late" },
    { "scales-drawn-equal", "C41c", "R08", "the generator draws equal scales", BROKEN,
      .cases = { GEMM_CASE }, .verifier = draw_equal_scales, .witness = "scale-a-late" },
    { "operands-drawn-zero", "C41c", NULL, "the generator draws zeros", BROKEN,
      .cases = { GEMM_CASE }, .verifier = draw_zeros, .witness = "scale-a-late" },
    { "reference-poisoned", "C41", NULL, "the model runs with subnormals flushed", BROKEN,
      .cases = { "fp8_gemm_nt m=8 n=16 k=128 out=f32 data=subnormal seed=12" },
      .verifier = poison_reference },
    { .name = NULL },
};
