/* SPDX-License-Identifier: MIT */
#include "verify/check/relation.h"

#include "verify/case/text.h"
#include "verify/check/inputs.h"
#include "verify/check/rerun.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct relation {
    const struct assay_trial *trial;
    const struct assay_property *property;
    const char *check;
    bool has_bits;
    struct assay_rerun *rerun;
    struct assay_result *result;
};

static struct assay_property_run first_run(const struct assay_trial *trial)
{
    return (struct assay_property_run){ trial->the_case, trial->problem,
                                        trial->candidate };
}

static struct assay_property_run second_run(const struct assay_rerun *rerun)
{
    return (struct assay_property_run){ &rerun->the_case, &rerun->problem,
                                        &rerun->tensors };
}

/* The second case with its inputs, and the candidate's word on it. ASSAY_UNSUPPORTED when
 * the relation or the candidate has none. */
static enum assay_status open_second(struct relation *relation)
{
    const struct assay_trial *const trial = relation->trial;
    const struct assay_property *const property = relation->property;
    const struct assay_property_run first = first_run(trial);
    struct assay_message message = { "" };
    struct assay_case the_case = *trial->the_case;
    the_case.explicit_bits_count = 0;
    if (property->derive && !property->derive(&first, &the_case))
        return ASSAY_UNSUPPORTED;
    enum assay_status status = assay_rerun_open(relation->rerun, &the_case, &message);
    assert(status != ASSAY_REFUSED); /* derived cases bind */
    if (status != ASSAY_RAN)
        return assay_fail(&relation->result->message, status, "property %s: %s",
                          property->name, message.text);
    const struct assay_property_run second = second_run(relation->rerun);
    if (!property->transform(&first, &second)) return ASSAY_UNSUPPORTED;
    status = assay_inputs_check(&the_case, second.problem, second.tensors, &message);
    assert(status == ASSAY_RAN); /* transformed inputs are legal */
    if (!property->derive) return ASSAY_RAN;
    status = assay_rerun_claim(relation->rerun, trial, relation->result);
    return status == ASSAY_RAN || status == ASSAY_UNSUPPORTED
               ? status
               : assay_fail(&relation->result->message, status, "property %s: %s",
                            property->name, relation->result->message.text);
}

/* A promise about both cases is comparable only if it is the same one. */
static bool promises_the_same(const struct relation *relation)
{
    const struct assay_trial *const trial = relation->trial;
    const struct assay_rerun *const rerun = relation->rerun;
    if (!relation->property->derive) return true;
    if (!trial->claim->has_numerics) return !rerun->claim.has_numerics;
    return rerun->claim.has_numerics &&
           strcmp(rerun->claim.numerics, trial->claim->numerics) == 0 &&
           memcmp(&rerun->numerics, trial->numerics, trial->operation->numerics_bytes) ==
               0;
}

static bool compares_bits(const struct relation *relation)
{
    return relation->property->expect && relation->has_bits &&
           relation->trial->is_repeatable && promises_the_same(relation);
}

/* The defined elements that do not hold what follows from the first run. */
static void compare(const struct relation *relation, struct assay_finding *finding)
{
    const struct assay_rerun *const rerun = relation->rerun;
    const struct assay_property_run first = first_run(relation->trial);
    const struct assay_property_run second = second_run(rerun);
    for (int i = 0; i < rerun->tensors.count; i++) {
        const struct assay_tensor *const tensor = &rerun->tensors.item[i];
        const int64_t elements = tensor->is_output ? assay_tensor_elements(tensor) : 0;
        for (int64_t at = 0; at < elements; at++) {
            uint32_t bits = 0;
            if (assay_definedness_at(rerun->map[i], at) != ASSAY_DEFINED ||
                !relation->property->expect(&first, &second, i, at, &bits) ||
                assay_tensor_bits(tensor, at) == bits)
                continue;
            if (finding->elements++ == 0)
                assay_rerun_show(rerun, &rerun->tensors, i, at, bits, finding);
        }
    }
}

static void report(const struct relation *relation, const struct assay_finding *differing,
                   const struct assay_finding *outside)
{
    const struct assay_property *const property = relation->property;
    const bool has_differing = differing->elements > 0;
    const struct assay_finding *const shown = has_differing ? differing : outside;
    struct assay_finding *const finding =
        assay_result_add_finding(relation->result, relation->check, true);
    finding->output = shown->output;
    finding->tensor = shown->tensor;
    finding->worst = shown->worst;
    finding->elements = shown->elements;
    struct assay_text text =
        assay_text_open(finding->sentence, sizeof(finding->sentence));
    assay_text_add(&text, "property %s: %lld element%s %s", property->name,
                   (long long)shown->elements, shown->elements == 1 ? "" : "s",
                   shown->elements == 1 ? "is " : "are ");
    assay_text_add(&text, "%s",
                   has_differing ? "not what the first run's outputs imply"
                                 : "beyond the bound");
    if (has_differing && outside->elements > 0)
        assay_text_add(&text, ", and %lld beyond the bound",
                       (long long)outside->elements);
    assay_text_add(&text, " (%s)", property->meaning);
    assay_text_mark_cut(&text);
}

static enum assay_status judge_second(struct relation *relation)
{
    const struct assay_trial *const trial = relation->trial;
    struct assay_finding differing = { .elements = 0 }, outside = { .elements = 0 };
    char doing[160];
    snprintf(doing, sizeof(doing), "property %s", relation->property->name);
    enum assay_status status = assay_rerun_run(trial, relation->rerun, trial->poison, 1,
                                               doing, relation->result);
    if (status == ASSAY_RAN && trial->plan->uses_oracle)
        status = assay_rerun_judge(trial, relation->rerun, trial->poison, &outside);
    if (status != ASSAY_RAN) return status;
    if (compares_bits(relation)) compare(relation, &differing);
    if (differing.elements || outside.elements) report(relation, &differing, &outside);
    return ASSAY_RAN;
}

static enum assay_status ask(struct relation *relation)
{
    enum assay_status status = open_second(relation);
    if (status == ASSAY_RAN) status = judge_second(relation);
    assay_rerun_close(relation->rerun);
    if (status != ASSAY_UNSUPPORTED) return status;
    relation->result->message = (struct assay_message){ "" };
    return ASSAY_RAN;
}

bool assay_relations_apply(const struct assay_trial *trial, enum assay_property_kind kind)
{
    const struct assay_property *property = trial->operation->properties;
    if (!property || trial->plan->candidate->is_recording) return false;
    while (property->name && property->kind != kind)
        property++;
    return property->name != NULL;
}

enum assay_status assay_relations_judge(const struct assay_trial *trial,
                                        enum assay_property_kind kind, const char *check,
                                        bool has_bits, struct assay_result *result)
{
    enum assay_status status = ASSAY_RAN;
    /* Relations follow indices. */
    if (!assay_inputs_are_legal(trial->operation, trial->problem, trial->candidate))
        return ASSAY_RAN;
    struct assay_rerun *const rerun = calloc(1, sizeof(*rerun));
    if (!rerun) return ASSAY_OUT_OF_MEMORY;
    for (const struct assay_property *property = trial->operation->properties;
         property->name && status == ASSAY_RAN; property++) {
        struct relation relation = { trial, property, check, has_bits, rerun, result };
        if (property->kind == kind) status = ask(&relation);
    }
    free(rerun);
    return status;
}
