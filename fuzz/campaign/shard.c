/* SPDX-License-Identifier: MIT */
#include "fuzz/campaign/shard.h"

#include "verify/case/number.h"
#include "verify/case/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_SHARDS = 1000000 };

static bool is_number(const char *text, int64_t *number)
{
    uint64_t value = 0;
    const bool is_right = text &&
                          assay_number_unsigned(text, &value) == ASSAY_NUMBER_VALID &&
                          value <= INT32_MAX;
    *number = (int64_t)value;
    return is_right;
}

static bool is_shard(const struct assay_shard *shard)
{
    return shard->count >= 1 && shard->count <= MAX_SHARDS && shard->index >= 0 &&
           shard->index < shard->count;
}

enum assay_status assay_shard_parse(const char *text, struct assay_shard *shard,
                                    struct assay_message *message)
{
    char first[16] = "";
    const char *const slash = strchr(text, '/');
    if (slash && (size_t)(slash - text) < sizeof(first))
        memcpy(first, text, (size_t)(slash - text));
    if (slash && is_number(first, &shard->index) && is_number(slash + 1, &shard->count) &&
        is_shard(shard))
        return ASSAY_RAN;
    return assay_fail(message, ASSAY_REFUSED,
                      "--shard %s is no share of a campaign; use I/N with I from 0 to "
                      "N - 1, such as 0/4",
                      assay_excerpt(text).text);
}

static enum assay_status find_test_shard(struct assay_shard *shard,
                                         struct assay_message *message)
{
    const char *const index = getenv("TEST_SHARD_INDEX");
    const char *const count = getenv("TEST_TOTAL_SHARDS");
    if (is_number(index, &shard->index) && is_number(count, &shard->count) &&
        is_shard(shard))
        return ASSAY_RAN;
    return assay_fail(message, ASSAY_REFUSED,
                      "TEST_SHARD_INDEX=%s of TEST_TOTAL_SHARDS=%s is no share; set the "
                      "first to 0 to N - 1, or name --shard I/N",
                      assay_excerpt(index ? index : "").text, assay_excerpt(count).text);
}

static enum assay_status find_array_task(struct assay_shard *shard,
                                         struct assay_message *message)
{
    const char *const minimum_text = getenv("SLURM_ARRAY_TASK_MIN");
    const char *const step_text = getenv("SLURM_ARRAY_TASK_STEP");
    int64_t task, minimum = 0, step = 1;
    const bool is_right = is_number(getenv("SLURM_ARRAY_TASK_ID"), &task) &&
                          is_number(getenv("SLURM_ARRAY_TASK_COUNT"), &shard->count) &&
                          (!minimum_text || is_number(minimum_text, &minimum)) &&
                          (!step_text || (is_number(step_text, &step) && step > 0)) &&
                          task >= minimum && (task - minimum) % step == 0;
    shard->index = is_right ? (task - minimum) / step : -1;
    if (is_right && is_shard(shard)) return ASSAY_RAN;
    return assay_fail(message, ASSAY_REFUSED,
                      "SLURM_ARRAY_TASK_ID, _COUNT, _MIN and _STEP make no share of a "
                      "campaign, as those of a list such as --array=1,5,6 do not; name "
                      "--shard I/N");
}

enum assay_status assay_shard_find(const char *text, struct assay_shard *shard,
                                   struct assay_message *message)
{
    *shard = (struct assay_shard){ .index = 0, .count = 1 };
    if (text) return assay_shard_parse(text, shard, message);
    if (getenv("TEST_TOTAL_SHARDS")) return find_test_shard(shard, message);
    if (getenv("SLURM_ARRAY_TASK_ID")) return find_array_task(shard, message);
    return ASSAY_RAN;
}

enum assay_status assay_shard_acknowledge(struct assay_message *message)
{
    const char *const path = getenv("TEST_SHARD_STATUS_FILE");
    if (!path || !getenv("TEST_TOTAL_SHARDS")) return ASSAY_RAN;
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return assay_fail(message, ASSAY_FAILED,
                          "TEST_SHARD_STATUS_FILE %s can't be written: %s",
                          assay_excerpt(path).text, strerror(errno));
    close(fd);
    return ASSAY_RAN;
}

int64_t assay_shard_number(struct assay_shard shard, int64_t local)
{
    return shard.index + local * shard.count;
}

int64_t assay_shard_cases(struct assay_shard shard, int64_t cases)
{
    return cases <= shard.index ? 0 : (cases - shard.index - 1) / shard.count + 1;
}
