/* SPDX-License-Identifier: MIT */
/* Checks that hold a second run of the candidate against its first one, by the relations
 * that the operation knows. */
#ifndef ASSAY_VERIFY_CHECK_RELATION_H
#define ASSAY_VERIFY_CHECK_RELATION_H

#include "verify/check/trial.h"

/* Whether the operation has a relation of that kind, and the candidate can run again. */
bool assay_relations_apply(const struct assay_trial *trial,
                           enum assay_property_kind kind);

/* Asks all relations of that kind, in the name of @check. Their bits count where
 * @has_bits and the candidate repeats its own. */
enum assay_status assay_relations_judge(const struct assay_trial *trial,
                                        enum assay_property_kind kind, const char *check,
                                        bool has_bits, struct assay_result *result);

#endif
