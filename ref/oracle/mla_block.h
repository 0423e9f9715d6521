/* SPDX-License-Identifier: MIT */
/* Queries and blocks of keys in the oracle's memory, and products of them: what
 * mla_attention.c is made of. */
#ifndef ASSAY_REF_ORACLE_MLA_BLOCK_H
#define ASSAY_REF_ORACLE_MLA_BLOCK_H

#include "ref/oracle/mla_attention.h"

/* The d_qk elements of row @i as they are, infinities and NaN included. */
void assay_mla_read_query(const struct assay_mla_oracle *oracle, int64_t i,
                          double *element);

/* Takes row @i in memory and starts its facts. */
void assay_mla_load_query(struct assay_mla_oracle *oracle, int64_t i);

/* Takes the block of keys that begins at @first in memory. */
void assay_mla_load_block(struct assay_mla_oracle *oracle, int64_t first);

/* Fill score, magnitude and value_magnitude of the block in memory. */
void assay_mla_find_scores(struct assay_mla_oracle *oracle);
void assay_mla_find_magnitudes(struct assay_mla_oracle *oracle);
void assay_mla_find_value_magnitudes(struct assay_mla_oracle *oracle);

/* @sum += @weight times @value, both in slices one after the other. */
void assay_mla_add_values(const struct assay_mla_oracle *oracle, const double *weight,
                          const double *value, double *sum);

#endif
