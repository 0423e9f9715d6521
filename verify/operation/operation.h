/* SPDX-License-Identifier: MIT */
/* What an operation tells the rest of the tool about itself. Case, data, backends, checks
 * and reports know operations only through this header. */
#ifndef ASSAY_VERIFY_OPERATION_OPERATION_H
#define ASSAY_VERIFY_OPERATION_OPERATION_H

#include "ref/tensor.h"
#include "verify/case/case.h"
#include "verify/data/stream.h"
#include "verify/operation/feature.h"
#include "verify/operation/property.h"

#include <stddef.h>

enum { ASSAY_MAX_PROBLEM_BYTES = 4096, ASSAY_MAX_NUMERICS_BYTES = 256 };

/* Room for the problem or the numerics of any operation. */
union assay_problem_storage {
    max_align_t alignment;
    char bytes[ASSAY_MAX_PROBLEM_BYTES];
};
union assay_numerics_storage {
    max_align_t alignment;
    char bytes[ASSAY_MAX_NUMERICS_BYTES];
};

struct assay_named_numerics { /* tables are closed by a NULL name */
    const char *name, *meaning;
    const void *numerics; /* numerics_bytes of the operation's struct */
};

/* How text, identification and faults reach one int of the numerics. A knob without
 * choices takes an integer in [minimum, maximum]. Tables are closed by a NULL name. */
struct assay_knob {
    const char *name, *meaning;
    size_t offset;
    const struct assay_choice *choices;
    int minimum, maximum;
};

/* A box of a tensor: part results lie in row-major order inside it. */
struct assay_region {
    int64_t start[ASSAY_MAX_RANK], count[ASSAY_MAX_RANK];
};

/* The oracle's word on one region: |candidate - value| <= bound. A value may be NaN or
 * infinite (then the candidate must be the same); an infinite bound claims nothing. */
struct assay_expected {
    double *value, *bound;
};

/* What the contract says about an element of an output. */
enum assay_definedness {
    ASSAY_UNDEFINED, /* may hold anything */
    ASSAY_DEFINED,
    ASSAY_UNTOUCHED, /* keeps what it held before */
};

struct assay_place { /* "tile 0,1 (rows 0-63, columns 64-127)" */
    char text[96];
};

struct assay_cost {
    double multiply_adds, bytes;
};

struct assay_operation {
    const char *name, *summary;
    const struct assay_parameter *parameters;
    const struct assay_named_numerics *numerics;
    const struct assay_knob *knobs;
    const struct assay_property *properties; /* NULL: there are none */
    const struct assay_feature *features;    /* what random cases vary */
    int campaign_scale; /* a small case takes so many times the multiply-adds of a small
                           GEMM, if it is to reach tiles and pages; 0: once */
    size_t problem_bytes, numerics_bytes; /* at most the maxima above */
    uint32_t data_kinds; /* bit 1 << kind for each kind of data it generates; 0: the kinds
                            below ASSAY_GENERAL_DATA_KINDS */

    /* Case to problem; the only place that refuses. */
    enum assay_status (*bind)(const struct assay_case *, void *problem,
                              struct assay_message *);
    /* The named numerics a case without as= means. */
    const struct assay_named_numerics *(*default_numerics)(const void *problem);
    /* Refuses numerics that make no sense for the problem. */
    enum assay_status (*check_numerics)(const void *problem, const void *numerics,
                                        struct assay_message *);
    /* Names, formats, shapes, strides and directions; data pointers stay NULL. */
    void (*shape)(const void *problem, struct assay_tensors *);
    /* Fills the inputs. */
    void (*fill)(const void *problem, enum assay_data_kind, uint64_t seed,
                 const struct assay_tensors *);
    /* Refuses tensors whose contents no kernel may be given (indices outside, plans with
     * holes, NaN scales); asked when the inputs are there and before any backend runs,
     * unless unsafe=1. NULL: there is nothing to check. */
    enum assay_status (*check_inputs)(const void *problem, const struct assay_tensors *,
                                      struct assay_message *);

    int64_t (*parts)(const void *problem);
    /* The box of output tensor @output (its place in assay_tensors) that a part owns. */
    void (*region)(const void *problem, int64_t part, int output, struct assay_region *);
    /* Writes an assay_definedness for each element of the part's region, row-major. NULL:
     * all elements are defined. */
    void (*defined)(const void *problem, const struct assay_tensors *, int64_t part,
                    int output, uint8_t *definedness);
    /* Writes for each element of input tensor @input, in logical row-major order, whether
     * a kernel may look at it; those it may not (slots without a token, rows of nobody,
     * table entries beyond the need) hold what must not matter. NULL: it may look at all
     * elements. The padding between rows is nobody's in any case. */
    void (*used)(const void *problem, const struct assay_tensors *, int input,
                 uint8_t *is_used);
    /* Computes a part's outputs as @numerics, already checked, does. ASSAY_RAN or
     * ASSAY_OUT_OF_MEMORY. */
    enum assay_status (*model)(const void *problem, const void *numerics,
                               const struct assay_tensors *, int64_t part);
    /* A few rows of a large problem as a problem of their own: writes to @narrowed and
     * @windows, which share the memory of @tensors, what the model computes to the same
     * bits as in the whole, for a fraction of the cost. False, and NULL as hook: the
     * problem is small, or its rows can't be taken out. */
    bool (*narrow)(const void *problem, const struct assay_tensors *, void *narrowed,
                   struct assay_tensors *windows);
    /* Rewrites those knobs of @numerics, which are legal, that nothing in the problem can
     * bring to light, whatever the data hold: numerics that then agree in all knobs
     * compute the same bits. NULL: any knob may show. */
    void (*settle)(const void *problem, void *numerics);
    /* @numerics gives the precision class the bound is for; @expected has one entry a
     * tensor, those of inputs unused. */
    enum assay_status (*oracle)(const void *problem, const void *numerics,
                                const struct assay_tensors *, int64_t part,
                                const struct assay_expected *expected);
    void (*place)(const void *problem, int output, int64_t element, struct assay_place *);
    struct assay_cost (*cost)(const void *problem);
    /* Whether the profile behind these numerics was measured by this project. */
    bool (*is_measured)(const void *numerics);
    /* What a verdict about these numerics has to say beside it ("ours: no upstream sm_90
     * kernel"), in static memory. NULL, as hook or as answer: nothing. */
    const char *(*remark)(const void *problem, const void *numerics);
    /* Whether all defined outputs are one constant on purpose (no keys, no rows). */
    bool (*is_constant_by_design)(const void *problem);
    /* Whether generated data of that kind leave no rounding but the last: every named
     * numerics must then give the oracle's value of output tensor @output, rounded once
     * to its format, to the bit. NULL: never. */
    bool (*is_exact)(const void *problem, enum assay_data_kind, int output);
};

/* All operations, closed by NULL. */
extern const struct assay_operation *const assay_operations[];

/* The operation of that name; NULL if there is none. */
const struct assay_operation *assay_operation_find(const char *name);

#endif
