/* SPDX-License-Identifier: MIT */
/* The table of planted faults: what its rows promise. */
#include "fuzz/fault/fault.h"

#include "tests/harness.h"
#include "verify/check/inputs.h"

#include <stdio.h>
#include <string.h>

static const struct assay_case *parsed(const char *line)
{
    static struct assay_case the_case;
    struct assay_message message;
    ck_assert_msg(assay_case_parse(line, &the_case, &message) == ASSAY_RAN, "%s: %s",
                  line, message.text);
    return &the_case;
}

/* --- rows ------------------------------------------------------------------------- */

START_TEST(names_are_unique_and_can_be_typed)
{
    const struct assay_fault *fault;
    for (int i = 0; (fault = assay_fault_at(i)); i++) {
        ck_assert_ptr_eq(assay_fault_find(fault->name), fault);
        ck_assert_msg(strspn(fault->name, "abcdefghijklmnopqrstuvwxyz0123456789-") ==
                          strlen(fault->name),
                      "%s", fault->name);
        ck_assert_ptr_nonnull(assay_fault_area_of(fault));
    }
    ck_assert_int_ge(assay_fault_at(99) != NULL, 1);
}
END_TEST

/* C01 to C41, with a letter or without. */
START_TEST(all_classes_of_the_catalogue_are_there_and_no_others)
{
    bool is_there[42] = { false };
    const struct assay_fault *fault;
    for (int i = 0; (fault = assay_fault_at(i)); i++) {
        int number = 0, length = 0;
        ck_assert_msg(sscanf(fault->class_id, "C%2d%n", &number, &length) == 1 &&
                          length == 3 && number >= 1 && number <= 41,
                      "%s: %s", fault->name, fault->class_id);
        const char *const letter = fault->class_id + 3;
        ck_assert_msg(strlen(letter) <= 1 && (!*letter || strchr("abcdef", *letter)),
                      "%s: %s", fault->name, fault->class_id);
        is_there[number] = true;
    }
    for (int number = 1; number <= 41; number++)
        ck_assert_msg(is_there[number], "no fault of class C%02d", number);
}
END_TEST

START_TEST(reports_are_those_of_the_catalogue)
{
    const struct assay_fault *fault;
    for (int i = 0; (fault = assay_fault_at(i)); i++) {
        int number = 0, length = 0;
        if (!fault->report) continue;
        ck_assert_msg(sscanf(fault->report, "R%2d%n", &number, &length) == 1 &&
                          length == (int)strlen(fault->report) && number >= 1 &&
                          number <= 58,
                      "%s: %s", fault->name, fault->report);
    }
}
END_TEST

START_TEST(rows_name_an_operation_and_cases_of_it_that_are_legal)
{
    int illegal = 0;
    const struct assay_fault *fault;
    for (int i = 0; (fault = assay_fault_at(i)); i++) {
        const struct assay_operation *const operation =
            assay_operation_find(fault->operation);
        ck_assert_msg(operation && fault->cases[0] && *fault->meaning, "%s", fault->name);
        for (int at = 0; at < ASSAY_MAX_FAULT_CASES && fault->cases[at]; at++) {
            struct assay_message message = { "it is another operation" };
            union assay_problem_storage problem;
            struct assay_case the_case;
            if (assay_case_parse(fault->cases[at], &the_case, &message) == ASSAY_RAN &&
                the_case.operation == operation &&
                operation->bind(&the_case, &problem, &message) == ASSAY_RAN)
                continue;
            fprintf(stderr, "%s: %s: %s\n", fault->name, fault->cases[at], message.text);
            illegal++;
        }
    }
    ck_assert_int_eq(illegal, 0);
}
END_TEST

START_TEST(rows_have_the_hooks_of_their_kind)
{
    const struct assay_fault *fault;
    for (int i = 0; (fault = assay_fault_at(i)); i++) {
        const bool is_kernel = fault->before || fault->numerics || fault->after;
        const bool is_verifier = fault->kind == ASSAY_FAULT_VERIFIER;
        ck_assert_msg(is_kernel != is_verifier, "%s", fault->name);
        ck_assert_msg((fault->verifier != NULL) == is_verifier, "%s", fault->name);
        if (!fault->witness) continue;
        const struct assay_fault *const witness = assay_fault_find(fault->witness);
        ck_assert_msg(witness && witness->kind != ASSAY_FAULT_VERIFIER &&
                          strcmp(witness->operation, fault->operation) == 0,
                      "%s: %s", fault->name, fault->witness);
    }
}
END_TEST

START_TEST(names_that_are_no_faults_are_refused_with_the_nearest)
{
    const struct assay_fault *fault;
    struct assay_message message;
    ck_assert_int_eq(assay_fault_need("promote-51", &fault, &message), ASSAY_REFUSED);
    ck_assert_str_eq(message.text,
                     "no fault is called 'promote-51'; did you mean 'promote-512'?");
    ck_assert_int_eq(assay_fault_need("", &fault, &message), ASSAY_REFUSED);
    ck_assert_ptr_nonnull(strstr(message.text, "`assay list faults` shows all"));
}
END_TEST

/* --- runs ------------------------------------------------------------------------- */

struct run { /* of a case's inputs on a backend */
    union assay_problem_storage problem;
    struct assay_tensors tensors;
    struct assay_buffers buffers;
    const struct assay_backend *backend;
    void *state;
};

static void open_run(struct run *run, const char *backend,
                     const struct assay_case *the_case)
{
    struct assay_message message = { "" };
    ck_assert_msg(assay_inputs_open(the_case, NULL, 0, &run->problem, &run->tensors,
                                    &run->buffers, &message) == ASSAY_RAN &&
                      assay_backend_open(backend, NULL, &run->backend, &run->state,
                                         &message) == ASSAY_RAN,
                  "%s: %s", backend, message.text);
}

static void compute(struct run *run, const struct assay_case *the_case, int launches)
{
    struct assay_message message = { "" };
    const struct assay_run_call call = { the_case, &run->problem, &run->tensors,
                                         launches };
    assay_buffers_poison(&run->tensors);
    ck_assert_msg(run->backend->run(run->state, &call, &message) == ASSAY_RAN, "%s",
                  message.text);
}

/* Other inputs in every second run, as a workspace would see them. */
static void refill(struct run *run, const struct assay_case *the_case, uint64_t number)
{
    if (number == 0) return;
    for (int i = 0; i < run->tensors.count; i++)
        if (!run->tensors.item[i].is_output)
            memset(run->tensors.item[i].data, ASSAY_BUFFER_PADDING,
                   (size_t)assay_tensor_bytes(&run->tensors.item[i]));
    the_case->operation->fill(&run->problem, the_case->data, the_case->seed + number % 2,
                              &run->tensors);
}

static void close_run(struct run *run)
{
    run->backend->close(run->state);
    assay_buffers_close(&run->buffers);
}

static bool are_equal(const struct run *one, const struct run *other)
{
    for (int i = 0; i < one->tensors.count; i++) {
        const struct assay_tensor *const tensor = &one->tensors.item[i];
        if (tensor->is_output && memcmp(tensor->data, other->tensors.item[i].data,
                                        (size_t)assay_tensor_bytes(tensor)) != 0)
            return false;
    }
    return assay_buffers_are_intact(&other->buffers, &other->tensors);
}

/* Whether the fault shows in any of its first runs on its first case. */
static bool shows(const struct assay_fault *fault)
{
    static struct run model, faulty;
    char backend[128];
    bool is_shown = false;
    snprintf(backend, sizeof(backend), "fault:%s", fault->name);
    const struct assay_case *const the_case = parsed(fault->cases[0]);
    open_run(&model, "model", the_case);
    open_run(&faulty, backend, the_case);
    const int runs = fault->kind == ASSAY_FAULT_EXECUTION ? 12 : 1;
    for (int i = 0; i < runs && !is_shown; i++) {
        refill(&model, the_case, (uint64_t)i);
        refill(&faulty, the_case, (uint64_t)i);
        compute(&model, the_case, 1);
        const uint64_t inputs = assay_inputs_hash(&faulty.tensors);
        compute(&faulty, the_case, i % 2 ? 3 : 1);
        ck_assert_msg(assay_inputs_hash(&faulty.tensors) == inputs,
                      "%s changes inputs that are not its own", fault->name);
        is_shown = !are_equal(&model, &faulty);
    }
    close_run(&model);
    close_run(&faulty);
    return is_shown;
}

START_TEST(every_fault_of_a_kernel_changes_its_own_case)
{
    int without_effect = 0;
    const struct assay_fault *fault;
    for (int i = 0; (fault = assay_fault_at(i)); i++)
        if (fault->kind != ASSAY_FAULT_VERIFIER && !shows(fault)) {
            fprintf(stderr, "%s has no effect on %s\n", fault->name, fault->cases[0]);
            without_effect++;
        }
    ck_assert_int_eq(without_effect, 0);
}
END_TEST

START_TEST(other_operations_are_not_supported)
{
    struct assay_message message;
    struct assay_backend_claim claim;
    const struct assay_backend *backend;
    void *state;
    ck_assert_int_eq(
        assay_backend_open("fault:promote-512", NULL, &backend, &state, &message),
        ASSAY_RAN);
    const struct assay_run_call call = { .the_case = parsed("quantise m=1 k=8") };
    ck_assert_int_eq(backend->claim(state, &call, &claim, &message), ASSAY_UNSUPPORTED);
    ck_assert_str_eq(message.text, "fault 'promote-512' is one of fp8_gemm_nt only");
    backend->close(state);
}
END_TEST

START_TEST(what_is_no_fault_of_a_kernel_is_no_backend)
{
    static const char *const texts[] = { "fault", "fault:", "fault:nothing",
                                         "fault:oracle-rounds-twice" };
    for (int i = 0; i < 4; i++) {
        struct assay_message message;
        const struct assay_backend *backend;
        void *state;
        ck_assert_int_eq(assay_backend_open(texts[i], NULL, &backend, &state, &message),
                         ASSAY_REFUSED);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        names_are_unique_and_can_be_typed,
        all_classes_of_the_catalogue_are_there_and_no_others,
        reports_are_those_of_the_catalogue,
        rows_name_an_operation_and_cases_of_it_that_are_legal,
        rows_have_the_hooks_of_their_kind,
        names_that_are_no_faults_are_refused_with_the_nearest,
        every_fault_of_a_kernel_changes_its_own_case,
        other_operations_are_not_supported,
        what_is_no_fault_of_a_kernel_is_no_backend,
        NULL,
    };
    return run_tests("fault", tests);
}
