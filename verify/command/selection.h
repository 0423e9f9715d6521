/* SPDX-License-Identifier: MIT */
/* The cases a command line selects: single lines, suites, recorded files and folders.
 * Everything is parsed and bound before anything runs, so that bad input changes
 * nothing. */
#ifndef ASSAY_VERIFY_COMMAND_SELECTION_H
#define ASSAY_VERIFY_COMMAND_SELECTION_H

#include "verify/case/case.h"

#include <stdint.h>

struct assay_recording;

struct assay_selected {
    char *line;          /* a case line, or NULL: */
    char *recorded_path; /* all cases of a recorded file */
};

struct assay_selection {
    int64_t count, capacity;
    struct assay_selected *item;
};

enum assay_status assay_select_case(struct assay_selection *selection, const char *line,
                                    struct assay_message *message);
enum assay_status assay_select_suite(struct assay_selection *selection, const char *path,
                                     struct assay_message *message);
/* A file, or a folder: all *.safetensors and *.safetensors.zst in it by name. */
enum assay_status assay_select_recorded(struct assay_selection *selection,
                                        const char *path, struct assay_message *message);
void assay_selection_close(struct assay_selection *selection);

/* Calls @visit for every selected case in order; @recording is NULL for lines. */
enum assay_status assay_selection_walk(
    const struct assay_selection *selection,
    enum assay_status (*visit)(void *context, const struct assay_case *the_case,
                               struct assay_recording *recording, int index,
                               struct assay_message *),
    void *context, struct assay_message *message);

#endif
