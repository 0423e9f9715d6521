/* SPDX-License-Identifier: MIT */
/* Faults of what is looked up: keys, pages, lengths, labels and sizes of groups. */
#include "fuzz/fault/fault.h"
#include "ref/fp8_gemm_grouped_problem.h"
#include "verify/operation/mla_dense_decode/mla_dense_decode.h"
#include "verify/operation/mla_sparse_decode/mla_sparse_decode.h"
#include "verify/operation/mla_sparse_prefill/mla_sparse_prefill.h"

#include <string.h>

enum { PAGE = ASSAY_MLA_BLOCK, GROUP = ASSAY_GROUP_ALIGNMENT };

#define DENSE(run)   ((struct assay_mla_dense_decode_problem *)(run)->problem)
#define SPARSE(run)  ((struct assay_mla_sparse_decode_problem *)(run)->problem)
#define PREFILL(run) ((struct assay_mla_sparse_prefill_problem *)(run)->problem)

/* --- indices ---------------------------------------------------------------------- */

static void change_indices(struct assay_fault_run *run,
                           int32_t (*change)(const struct assay_fault_run *, int32_t))
{
    const struct assay_tensor *const indices = assay_fault_tensor(run, "indices");
    for (int64_t i = 0; i < assay_tensor_elements(indices); i++) {
        const int32_t index = (int32_t)assay_tensor_bits(indices, i);
        assay_tensor_set_bits(indices, i, (uint32_t)change(run, index));
    }
}

static int32_t none_as_first(const struct assay_fault_run *run, int32_t index)
{
    (void)run;
    return index == -1 ? 0 : index;
}

static int32_t far_as_last(const struct assay_fault_run *run, int32_t index)
{
    const int32_t keys = (int32_t)PREFILL(run)->s_kv;
    return index >= keys ? keys - 1 : index;
}

static int32_t next_slot(const struct assay_fault_run *run, int32_t index)
{
    const struct assay_mla_cache *const cache = &SPARSE(run)->cache;
    return index >= 0 && index + 1 < cache->pages * cache->page_size ? index + 1 : index;
}

/* Byte offsets where elements are meant, or a product that has wrapped around. */
static int32_t wrapped(const struct assay_fault_run *run, int32_t index)
{
    const int32_t keys = (int32_t)PREFILL(run)->s_kv;
    return index >= 32 && index < keys ? index % 32 : index;
}

static void read_none_as_first(struct assay_fault_run *run)
{
    change_indices(run, none_as_first);
}

static void read_far_as_last(struct assay_fault_run *run)
{
    change_indices(run, far_as_last);
}

static void read_next_slot(struct assay_fault_run *run)
{
    change_indices(run, next_slot);
}

static void wrap_indices(struct assay_fault_run *run)
{
    change_indices(run, wrapped);
}

/* Every token has the list of its request's first one. */
static void stay_at_first_token(struct assay_fault_run *run)
{
    const struct assay_tensor *const indices = assay_fault_tensor(run, "indices");
    const int64_t topk = SPARSE(run)->cache.topk, tokens = SPARSE(run)->s_q;
    for (int64_t i = 0; i < assay_tensor_elements(indices); i++) {
        const int64_t request = i / (tokens * topk);
        assay_tensor_set_bits(
            indices, i, assay_tensor_bits(indices, request * tokens * topk + i % topk));
    }
}

/* The last 64 of each list are not looked at. */
static void drop_last_block(struct assay_fault_run *run)
{
    const struct assay_tensor *const indices = assay_fault_tensor(run, "indices");
    const int64_t topk = SPARSE(run)->cache.topk;
    for (int64_t i = 0; topk > PAGE && i < assay_tensor_elements(indices); i++)
        if (i % topk >= topk - PAGE) assay_tensor_set_bits(indices, i, UINT32_MAX);
}

/* --- lengths ---------------------------------------------------------------------- */

static void change_lengths(struct assay_fault_run *run, const char *name,
                           int32_t (*change)(int32_t length, int32_t most), int32_t most)
{
    if (!assay_fault_has(run, name)) return;
    const struct assay_tensor *const lengths = assay_fault_tensor(run, name);
    for (int64_t i = 0; i < assay_tensor_elements(lengths); i++) {
        const int32_t length = (int32_t)assay_tensor_bits(lengths, i);
        assay_tensor_set_bits(lengths, i, (uint32_t)change(length, most));
    }
}

static int32_t all(int32_t length, int32_t most)
{
    (void)length;
    return most;
}

static int32_t one_less(int32_t length, int32_t most)
{
    (void)most;
    return length > 0 ? length - 1 : length;
}

static int32_t one_more(int32_t length, int32_t most)
{
    return length < most ? length + 1 : length;
}

static int32_t whole_blocks(int32_t length, int32_t most)
{
    const int32_t rounded = (length + PAGE - 1) / PAGE * PAGE;
    return rounded < most ? rounded : most;
}

static int32_t at_least_one(int32_t length, int32_t most)
{
    (void)most;
    return length > 0 ? length : 1;
}

static int32_t less_where_whole(int32_t length, int32_t most)
{
    (void)most;
    return length > 0 && length % PAGE == 0 ? length - 1 : length;
}

static void ignore_topk_length(struct assay_fault_run *run)
{
    change_lengths(run, "topk_length", all, (int32_t)SPARSE(run)->cache.topk);
}

static void shorten_topk_length(struct assay_fault_run *run)
{
    change_lengths(run, "topk_length", one_less, 0);
}

static void lengthen_topk_length(struct assay_fault_run *run)
{
    change_lengths(run, "topk_length", one_more, (int32_t)SPARSE(run)->cache.topk);
}

static void round_topk_length(struct assay_fault_run *run)
{
    change_lengths(run, "topk_length", whole_blocks, (int32_t)PREFILL(run)->topk);
}

static void round_length(struct assay_fault_run *run)
{
    change_lengths(run, "cache_seqlens", whole_blocks, INT32_MAX);
}

static void run_empty_request(struct assay_fault_run *run)
{
    change_lengths(run, "cache_seqlens", at_least_one, 0);
}

static void drop_last_of_whole_page(struct assay_fault_run *run)
{
    change_lengths(run, "cache_seqlens", less_where_whole, 0);
}

/* --- pages ------------------------------------------------------------------------ */

/* Gives every entry of the block table that @source names, where that is a page. */
static void look_up(struct assay_fault_run *run,
                    int64_t (*source)(const struct assay_fault_run *, int64_t row,
                                      int64_t column))
{
    uint32_t bits[ASSAY_FAULT_ELEMENTS];
    const struct assay_tensor *const table = assay_fault_tensor(run, "block_table");
    const int64_t columns = table->shape[1];
    const int64_t elements = assay_fault_read(table, bits);
    for (int64_t i = 0; i < elements; i++)
        assay_tensor_set_bits(table, i, bits[source(run, i / columns, i % columns)]);
}

static int64_t columns_of(const struct assay_fault_run *run)
{
    return assay_fault_tensor(run, "block_table")->shape[1];
}

static int64_t page_before(const struct assay_fault_run *run, int64_t row, int64_t column)
{
    return row * columns_of(run) + (column > 0 ? column - 1 : 0);
}

static int64_t first_request(const struct assay_fault_run *run, int64_t row,
                             int64_t column)
{
    (void)run, (void)row;
    return column;
}

static int64_t as_query_row(const struct assay_fault_run *run, int64_t row,
                            int64_t column)
{
    const int64_t rows = assay_fault_tensor(run, "block_table")->shape[0];
    return row * DENSE(run)->s_q % rows * columns_of(run) + column;
}

static void read_page_before(struct assay_fault_run *run)
{
    look_up(run, page_before);
}

static void read_first_table(struct assay_fault_run *run)
{
    look_up(run, first_request);
}

static void read_table_of_row(struct assay_fault_run *run)
{
    look_up(run, as_query_row);
}

static void double_pages(struct assay_fault_run *run)
{
    const struct assay_tensor *const table = assay_fault_tensor(run, "block_table");
    const int64_t pages = DENSE(run)->pages;
    for (int64_t i = 0; i < assay_tensor_elements(table); i++) {
        const int64_t page = (int32_t)assay_tensor_bits(table, i);
        if (page >= 0 && page < pages)
            assay_tensor_set_bits(table, i, (uint32_t)(2 * page % pages));
    }
}

/* --- groups ----------------------------------------------------------------------- */

static void label_from_last_row(struct assay_fault_run *run)
{
    int32_t *const label = assay_fault_tensor(run, "m_indices")->data;
    const int64_t rows = assay_fault_tensor(run, "m_indices")->shape[0];
    for (int64_t first = 0; first < rows; first += GROUP) {
        const int64_t last = (first + GROUP < rows ? first + GROUP : rows) - 1;
        if (label[last] != label[first]) label[first] = label[last];
    }
}

static void use_scale_of_group_before(struct assay_fault_run *run)
{
    const struct assay_tensor *const scales = assay_fault_tensor(run, "sfb");
    const size_t bytes = (size_t)scales->stride[0] * sizeof(float);
    char *const data = scales->data;
    if (scales->shape[0] > 1)
        memmove(data + bytes, data, (size_t)(scales->shape[0] - 1) * bytes);
}

static void use_weights_of_first_group(struct assay_fault_run *run)
{
    const struct assay_tensor *const b = assay_fault_tensor(run, "b");
    const size_t bytes = (size_t)b->stride[0];
    for (int64_t group = 1; group < b->shape[0]; group++)
        memcpy((char *)b->data + (size_t)group * bytes, b->data, bytes);
}

static int32_t none_as_all(int32_t length, int32_t most)
{
    return length == 0 ? most : length;
}

static void fill_empty_groups(struct assay_fault_run *run)
{
    const int64_t room = assay_fault_tensor(run, "d")->shape[1];
    change_lengths(run, "masked_m", none_as_all, (int32_t)room);
}

static int32_t whole_tiles_less(int32_t length, int32_t most)
{
    (void)most;
    return length > 64 ? 64 : length;
}

static void count_first_tile_only(struct assay_fault_run *run)
{
    change_lengths(run, "masked_m", whole_tiles_less, 0);
}

#define DECODE  "mla_dense_decode b=2 h_q=16 s_k=130,200 sms=1 seed=8"
#define WHOLE   "mla_dense_decode b=2 h_q=16 s_k=128,64 sms=1 seed=8"
#define EMPTY   "mla_dense_decode b=2 h_q=16 s_k=0,70 sms=1 seed=8"
#define HOLES   "mla_sparse_decode kv=v32 b=1 h_q=64 s_q=2 topk=128 invalid=0.3 seed=8"
#define LENGTHS "mla_sparse_decode kv=model1 b=2 h_q=64 topk=128 topk_length=70,3 seed=8"
#define OUTSIDE                                                                          \
  "mla_sparse_prefill s_q=2 h_q=64 s_kv=90 d_qk=512 topk=128 invalid=0.3 seed=8"
#define SHORT                                                                            \
  "mla_sparse_prefill s_q=2 h_q=64 s_kv=90 d_qk=512 topk=128 topk_length=70,3 seed=8"
#define LABELS "m_grouped_fp8_gemm_nt_contiguous group_m=100,128 n=64 k=256 seed=8"
#define MASKED                                                                           \
  "m_grouped_fp8_gemm_nt_masked groups=3 m_max=128 masked_m=3,0,100 n=64 k=128 seed=8"

#define IN(op)     .operation = op, .kind = ASSAY_FAULT_FUNCTION
#define DENSE_OP   "mla_dense_decode"
#define SPARSE_OP  "mla_sparse_decode"
#define PREFILL_OP "mla_sparse_prefill"
#define LABELS_OP  "m_grouped_fp8_gemm_nt_contiguous"
#define MASKED_OP  "m_grouped_fp8_gemm_nt_masked"

const struct assay_fault assay_faults_index[] = {
    { "none-as-first", "C33a", "R47", "index -1 is read as slot 0 of page 0",
      IN(SPARSE_OP), .cases = { HOLES }, .before = read_none_as_first },
    { "none-as-first-prefill", "C21b", "R43", "index -1 gathers key 0", IN(PREFILL_OP),
      .cases = { OUTSIDE }, .before = read_none_as_first },
    { "index-upper-unchecked", "C33b", "R47", "an index beyond the keys is clamped",
      IN(PREFILL_OP), .cases = { OUTSIDE }, .before = read_far_as_last },
    { "index-off-by-one", "C33", NULL, "the slot after the named one is read",
      IN(SPARSE_OP), .cases = { HOLES }, .before = read_next_slot },
    { "index-wraps", "C26", "R51", "the product of index and row wraps around",
      IN(PREFILL_OP), .cases = { OUTSIDE }, .before = wrap_indices },
    { "index-first-token", "C34c", "R50",
      "all tokens of a request have the first one's list", IN(SPARSE_OP),
      .cases = { HOLES }, .before = stay_at_first_token },
    { "index-last-block-lost", "C08a", NULL, "the last 64 indices are not looked at",
      IN(SPARSE_OP), .cases = { HOLES }, .before = drop_last_block },
    { "topk-length-ignored", "C33d", "R47", "all indices count, whatever topk_length",
      IN(SPARSE_OP), .cases = { LENGTHS }, .before = ignore_topk_length },
    { "topk-length-one-short", "C33c", "R47", "the last index of a list is left out",
      IN(SPARSE_OP), .cases = { LENGTHS }, .before = shorten_topk_length },
    { "topk-length-one-long", "C33c", "R47", "one index beyond the length counts",
      IN(SPARSE_OP), .cases = { LENGTHS }, .before = lengthen_topk_length },
    { "topk-length-rounded", "C33d", "R47", "indices to the next 64 count",
      IN(PREFILL_OP), .cases = { SHORT }, .before = round_topk_length },
    { "length-rounded", "C35a", "R34", "the length is rounded up to the page",
      IN(DENSE_OP), .cases = { DECODE }, .before = round_length },
    { "length-zero-runs", "C35b", "R48", "a request without keys runs a tile",
      IN(DENSE_OP), .cases = { EMPTY }, .before = run_empty_request },
    { "length-whole-page", "C35c", NULL, "the last key of a whole page is dropped",
      IN(DENSE_OP), .cases = { WHOLE }, .before = drop_last_of_whole_page },
    { "page-before", "C26c", NULL, "the page before the right one is read", IN(DENSE_OP),
      .cases = { DECODE }, .before = read_page_before },
    { "page-offset-doubled", "C26b", "R51", "page offsets are taken twice", IN(DENSE_OP),
      .cases = { DECODE }, .before = double_pages },
    { "table-of-first-request", "C31b", "R54", "all requests have the first one's pages",
      IN(DENSE_OP), .cases = { DECODE }, .before = read_first_table },
    { "table-by-query-row", "C34d", "R50", "the block table's row is the query row",
      IN(DENSE_OP),
      .cases = { "mla_dense_decode b=3 h_q=16 s_q=2 s_k=130,200,90 sms=1 seed=8" },
      .before = read_table_of_row },
    { "label-from-last-row", "C18a", "R23", "a tile's group is that of its last row",
      IN(LABELS_OP), .cases = { LABELS }, .before = label_from_last_row },
    { "scale-of-group-before", "C18c", NULL, "b of a group, its scales of the one before",
      IN(LABELS_OP), .cases = { LABELS }, .before = use_scale_of_group_before },
    { "weights-of-first-group", "C18", "R23", "all groups have the first one's b",
      IN(LABELS_OP), .cases = { LABELS }, .before = use_weights_of_first_group },
    { "mask-zero-as-all", "C19c", "R24", "a group without rows counts as full",
      IN(MASKED_OP), .cases = { MASKED }, .before = fill_empty_groups },
    { "mask-first-tile-only", "C19b", NULL, "rows beyond the first tile do not count",
      IN(MASKED_OP), .cases = { MASKED }, .before = count_first_tile_only },
    { .name = NULL },
};
