/* SPDX-License-Identifier: MIT */
/* `assay list`: what there is, from the registries, and random suites. */
#include "fuzz/fault/class.h"
#include "verify/case/setting.h"
#include "verify/check/trial.h"
#include "verify/command/command.h"
#include "verify/operation/draw.h"
#include "verify/report/report.h"

#include <argp.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_OP = 256, KEY_COUNT, KEY_SEED, KEY_MULTIPLY_ADDS };

struct list {
    const char *what, *operation;
    int64_t count, multiply_adds;
    uint64_t seed;
    enum assay_status status;
    struct assay_message message;
};

static void print_row(const char *name, const char *meaning)
{
    printf("%-24s %s\n", name, meaning ? meaning : "");
}

static void print_choices(const struct assay_choice *choices)
{
    for (const struct assay_choice *choice = choices; choice->name; choice++)
        printf("%s%s", choice == choices ? "" : " | ", choice->name);
}

static void print_range(const struct assay_parameter *key)
{
    const struct assay_setting setting = assay_setting_of(key);
    char range[128];
    struct assay_text text = assay_text_open(range, sizeof(range));
    assay_text_add(&text, "%s", key->is_fraction ? "a fraction from " : "");
    assay_setting_format(&setting, key->minimum, &text);
    assay_text_add(&text, " to ");
    assay_setting_format(&setting, key->maximum, &text);
    fputs(range, stdout);
}

static void list_operations(void)
{
    for (int i = 0; assay_operations[i]; i++) {
        print_row(assay_operations[i]->name, assay_operations[i]->summary);
        for (const struct assay_parameter *key = assay_operations[i]->parameters;
             key->name; key++) {
            printf("  %-10s %s: ", key->name, key->meaning);
            if (key->choices)
                print_choices(key->choices);
            else
                print_range(key);
            puts(key->is_required ? " (required)" : "");
        }
    }
}

static void list_numerics(void)
{
    for (int i = 0; assay_operations[i]; i++) {
        puts(assay_operations[i]->name);
        for (const struct assay_named_numerics *row = assay_operations[i]->numerics;
             row->name; row++)
            printf("  %-22s %s\n", row->name, row->meaning);
        puts("  knobs:");
        for (const struct assay_knob *knob = assay_operations[i]->knobs; knob->name;
             knob++) {
            printf("  %-22s %s: ", knob->name, knob->meaning);
            if (knob->choices)
                print_choices(knob->choices);
            else
                printf("%d to %d", knob->minimum, knob->maximum);
            putchar('\n');
        }
    }
}

static void list_backends(void)
{
    for (int i = 0; assay_backends[i]; i++) {
        char text[64];
        snprintf(text, sizeof(text), "%s%s%s", assay_backends[i]->scheme,
                 assay_backends[i]->argument ? ":" : "",
                 assay_backends[i]->argument ? assay_backends[i]->argument : "");
        print_row(text, assay_backends[i]->summary);
    }
}

static void list_data(void)
{
    for (int i = 0; assay_data_kinds[i].name; i++)
        print_row(assay_data_kinds[i].name, assay_data_kinds[i].meaning);
}

static void list_checks(void)
{
    for (int i = 0; assay_checks[i]; i++) {
        print_row(assay_checks[i]->name, assay_checks[i]->proves);
        if (assay_checks[i]->runs_candidate) puts("  runs the candidate again");
    }
}

static void list_criteria(void)
{
    for (const struct assay_criterion *row = assay_criteria_table; row->name; row++) {
        char limits[256];
        struct assay_text text = assay_text_open(limits, sizeof(limits));
        assay_criterion_describe(row, &text);
        print_row(row->name, limits);
        printf("  for %s%s%s of %s", row->output ? row->output : "all outputs",
               row->format ? " in " : "",
               row->format ? assay_format_name(row->format) : "",
               row->operations ? row->operations : "all operations");
        if (row->e2m1_inputs) printf(" with e2m1 inputs: %d", row->e2m1_inputs);
        printf("\n  from %s\n", row->source);
    }
}

static void list_faults(void)
{
    for (const struct assay_fault_area *area = assay_fault_areas; area->name; area++) {
        printf("%s: %s\n", area->name, area->summary);
        for (const struct assay_fault *fault = area->faults; fault->name; fault++)
            printf("  %-26s %s\n    %s %s; %s of %s%s%s\n", fault->name, fault->meaning,
                   fault->class_id, assay_fault_classes[assay_fault_class_of(fault)].name,
                   assay_fault_kind_names[fault->kind], fault->operation,
                   fault->report ? ", as in " : "", fault->report ? fault->report : "");
    }
}

static void list_reports(void)
{
    for (int i = 0; assay_reports[i]; i++)
        print_row(assay_reports[i]->name, assay_reports[i]->summary);
}

static int is_suite(const struct dirent *entry)
{
    const char *const dot = strrchr(entry->d_name, '.');
    return dot && strcmp(dot, ".cases") == 0;
}

/* Suites are files: those of the corpus, where there is one. */
static void list_suites(void)
{
    const char *const corpus = getenv("ASSAY_CORPUS");
    char folder[4096];
    snprintf(folder, sizeof(folder), "%s/suites", corpus ? corpus : "corpus");
    struct dirent **entries;
    const int count = scandir(folder, &entries, is_suite, alphasort);
    for (int i = 0; i < count; i++) {
        printf("%s/%s\n", folder, entries[i]->d_name);
        free(entries[i]);
    }
    if (count >= 0) free(entries);
    if (count <= 0)
        fprintf(stderr, "assay: no suites in %s; ASSAY_CORPUS names the corpus folder\n",
                folder);
}

/* Case i depends on seed and i alone, so that a longer list begins like a shorter one. */
static void list_cases(struct list *list)
{
    const struct assay_operation *const operation =
        assay_operation_find(list->operation ? list->operation : "");
    if (!operation) {
        list->status =
            assay_fail(&list->message, ASSAY_REFUSED,
                       "--op '%s' is no operation; `assay list operations` shows all",
                       list->operation ? list->operation : "");
        return;
    }
    for (int64_t i = 0; i < list->count; i++) {
        struct assay_stream stream;
        struct assay_case the_case;
        char line[ASSAY_MAX_CASE_LINE];
        assay_stream_open(&stream, list->seed, operation->name, "case", i);
        assay_draw(operation, &stream, (double)list->multiply_adds, &the_case);
        assay_case_format(&the_case, line, sizeof(line));
        puts(line);
    }
}

static const struct {
    const char *name;
    void (*print)(void);
} lists[] = {
    { "operations", list_operations }, { "backends", list_backends },
    { "numerics", list_numerics },     { "data", list_data },
    { "checks", list_checks },         { "criteria", list_criteria },
    { "faults", list_faults },         { "reports", list_reports },
    { "suites", list_suites },         { NULL, NULL },
};

static const struct argp_option options[] = {
    { "op", KEY_OP, "OPERATION", 0, "of random cases", 0 },
    { "count", KEY_COUNT, "N", 0, "so many random cases (10)", 0 },
    { "seed", KEY_SEED, "S", 0, "of random cases (0)", 0 },
    { "multiply-adds", KEY_MULTIPLY_ADDS, "N", 0, "at most so many a case (2097152)", 0 },
    { 0 },
};

static enum assay_status parse_number(struct list *list, const char *option,
                                      const char *text, int64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoll(text, &end, 10);
    if (errno || *end || end == text || *number < 0)
        return assay_fail(&list->message, ASSAY_REFUSED,
                          "--%s %s is no count; use a decimal number, 0 or more", option,
                          text);
    return ASSAY_RAN;
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct list *const list = state->input;
    int64_t seed = 0;
    if (list->status != ASSAY_RAN) return 0;
    switch (key) {
    case KEY_OP: list->operation = argument; break;
    case KEY_COUNT:
        list->status = parse_number(list, "count", argument, &list->count);
        break;
    case KEY_SEED:
        list->status = parse_number(list, "seed", argument, &seed);
        list->seed = (uint64_t)seed;
        break;
    case KEY_MULTIPLY_ADDS:
        list->status =
            parse_number(list, "multiply-adds", argument, &list->multiply_adds);
        if (list->status == ASSAY_RAN && list->multiply_adds < 1024)
            list->status = assay_fail(
                &list->message, ASSAY_REFUSED,
                "--multiply-adds %s leaves no case; use 1024 or more", argument);
        break;
    case ARGP_KEY_ARG:
        if (list->what) argp_usage(state);
        list->what = argument;
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

int assay_command_list(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options,
        .parser = parse_option,
        .args_doc = "operations|backends|numerics|data|checks|criteria|faults|reports|"
                    "suites|cases",
        .doc = "Shows what there is. `cases` writes a random suite to stdout; a few of "
               "its cases prove nothing, which `verify --max-indecisive` allows for.",
    };
    struct list list = { .count = 10, .multiply_adds = 1 << 21, .status = ASSAY_RAN };
    argp_parse(&argp, argc, argv, 0, NULL, &list);
    const char *const what = list.what ? list.what : "";
    const char *names[sizeof(lists) / sizeof(lists[0]) + 1] = { "cases" };
    bool is_known = strcmp(what, "cases") == 0;
    if (is_known && list.status == ASSAY_RAN) list_cases(&list);
    for (int i = 0; lists[i].name && list.status == ASSAY_RAN; i++) {
        names[i + 1] = lists[i].name;
        if (strcmp(lists[i].name, what) != 0) continue;
        lists[i].print();
        is_known = true;
    }
    if (list.status == ASSAY_RAN && !is_known) {
        const char *const nearest = assay_nearest(what, names);
        list.status =
            assay_fail(&list.message, ASSAY_REFUSED, "there is no list of '%s'; %s%s%s",
                       what, nearest ? "did you mean '" : "see `assay list --help`",
                       nearest ? nearest : "", nearest ? "'?" : "");
    }
    if (list.status != ASSAY_RAN) return assay_complain((int)list.status, &list.message);
    if (fflush(stdout) != 0) {
        assay_fail(&list.message, ASSAY_FAILED, "stdout: writing failed: %s",
                   strerror(errno));
        return assay_complain(ASSAY_FAILED, &list.message);
    }
    return ASSAY_EXIT_PASSED;
}
