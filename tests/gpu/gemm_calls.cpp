/* SPDX-License-Identifier: MIT */
/* Calls gpu/'s host code with tensors of any shape and stride, which cases do not have: a
 * line of standard input is one call, its words apart by tabs:
 *
 *     claim CASE OPTIONS TENSOR...           without data: extents may be anything
 *     run CASE OPTIONS TENSOR...             claim, prepare, launch, fetch
 *     plan KIND FORM GROUP_K CHANGED TENSOR...
 *                                            a plan for operands that lie nowhere, and its
 *                                            launch with the operand CHANGED elsewhere
 *
 * TENSOR is "name format shape stride [value,value...]"; what is called d is the output.
 * Answers are one line each: the step that ended it, its result, and the sentence. */
#include "gpu/gemm/plan.h"

#include <iostream>
#include <map>
#include <sstream>
#include <string>

extern "C" const assay_plugin *assay_plugin_v1(void);

namespace {

using strings = std::vector<std::string>;

strings split(const std::string &text, char separator)
{
    strings parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, separator);)
        parts.push_back(part);
    return parts;
}

std::vector<int64_t> numbers(const std::string &text)
{
    std::vector<int64_t> values;
    for (const std::string &one : split(text, ','))
        values.push_back(std::stoll(one));
    return values;
}

/* A call, and all that it points to. */
struct owned_call {
    assay_call call = {};
    std::string case_line, operation, options;
    std::vector<strings> words;
    std::vector<assay_plugin_tensor> tensors;
    std::vector<const assay_plugin_tensor *> pointers;
    std::vector<std::vector<unsigned char>> data;
    char why[512] = "";

    owned_call(const std::string &line, const std::string &asked,
               const strings &described)
        : case_line(line), operation(line.substr(0, line.find(' '))), options(asked)
    {
        for (const std::string &one : described)
            words.push_back(split(one, ' '));
        for (const strings &one : words)
            tensors.push_back(tensor_of(one));
        for (const assay_plugin_tensor &one : tensors)
            pointers.push_back(&one);
        call.bytes = sizeof(call);
        call.tensor_count = (int32_t)tensors.size();
        call.operation = operation.c_str();
        call.case_line = case_line.c_str();
        call.options = options.c_str();
        call.tensor = pointers.data();
        call.why = why;
        call.why_bytes = sizeof(why);
    }
    owned_call(const owned_call &) = delete;

    static assay_plugin_tensor tensor_of(const strings &described)
    {
        static const std::map<std::string, int32_t> formats = {
            { "e4m3", ASSAY_PLUGIN_E4M3 }, { "e5m2", ASSAY_PLUGIN_E5M2 },
            { "e2m1", ASSAY_PLUGIN_E2M1 }, { "bf16", ASSAY_PLUGIN_BF16 },
            { "f32", ASSAY_PLUGIN_F32 },   { "i32", ASSAY_PLUGIN_I32 },
        };
        const std::vector<int64_t> shape = numbers(described.at(2));
        const std::vector<int64_t> stride = numbers(described.at(3));
        assay_plugin_tensor made = {};
        made.bytes = sizeof(made);
        made.format = formats.at(described.at(1));
        made.is_output = described[0] == "d";
        made.rank = (int32_t)shape.size();
        made.name = described[0].c_str();
        std::copy(shape.begin(), shape.end(), made.shape);
        std::copy(stride.begin(), stride.end(), made.stride);
        return made;
    }

    void allocate()
    {
        for (size_t i = 0; i < tensors.size(); i++) {
            data.emplace_back(assay_cuda::tensor_bytes(tensors[i]) + 1);
            tensors[i].data = data.back().data();
            if (words[i].size() < 5) continue;
            int32_t *value = reinterpret_cast<int32_t *>(data.back().data());
            for (const int64_t one : numbers(words[i][4]))
                *value++ = (int32_t)one;
        }
    }
};

void answer(const char *step, int result, const owned_call &given)
{
    std::cout << step << ' ' << result << ' ' << given.why << std::endl;
}

void call_plugin(owned_call &given, bool runs)
{
    const assay_plugin *const plugin = assay_plugin_v1();
    assay_claim promise = {};
    void *state = nullptr;
    promise.bytes = sizeof(promise);
    int result = plugin->claim(&given.call, &promise);
    if (result != ASSAY_PLUGIN_OK || !runs) return answer("claim", result, given);
    given.allocate();
    result = plugin->prepare(&given.call, &state);
    if (result != ASSAY_PLUGIN_OK) return answer("prepare", result, given);
    result = plugin->launch(state, 1, nullptr);
    if (result == ASSAY_PLUGIN_OK) result = plugin->fetch(state);
    plugin->release(state);
    answer("launch", result, given);
}

/* Where operands may be said to lie, as nobody reads them: far apart. */
struct places {
    gemm::operands all = {};

    static const void *at(int index)
    {
        return reinterpret_cast<const void *>((uintptr_t)(index + 1) << 44);
    }

    explicit places(const assay_call *call)
    {
        all.a = at(0);
        all.b = at(1);
        all.sfa = static_cast<const float *>(at(2));
        all.sfb = static_cast<const float *>(at(3));
        all.c =
            assay_call_tensor(call, "c") ? static_cast<const float *>(at(4)) : nullptr;
        all.d = const_cast<void *>(at(5));
        all.layout = static_cast<const int32_t *>(at(6));
    }

    void move(const std::string &name)
    {
        if (name == "a") all.a = at(7);
        if (name == "b") all.b = at(7);
        if (name == "sfa") all.sfa += 4;
        if (name == "sfb") all.sfb += 4;
        if (name == "c") all.c += 4;
        if (name == "no c") all.c = nullptr;
        if (name == "d") all.d = const_cast<void *>(at(7));
        if (name == "layout") all.layout += 4;
    }
};

cudaError_t never(assay_cuda::run &)
{
    return cudaErrorUnknown;
}

void plan_and_launch(owned_call &given, gemm::kind kind, gemm::scale_form form,
                     const std::vector<int64_t> &group_k, const std::string &changed)
{
    assay_cuda::run run(&given.call, never);
    const gemm::problem of = gemm::problem_of(&given.call, kind, form);
    gemm::plan made;
    places operands(&given.call);
    cudaError_t error = gemm::open_plan(run, of, operands.all, group_k.data(), &made);
    if (error != cudaSuccess) return answer("plan", error, given);
    operands.move(changed);
    error = gemm::launch_plan(run, made, operands.all);
    answer("launch", error, given);
}

} // namespace

int main()
{
    for (std::string line; std::getline(std::cin, line);) {
        const strings words = split(line, '\t');
        const bool is_plan = words.at(0) == "plan";
        const strings tensors(words.begin() + (is_plan ? 5 : 3), words.end());
        if (is_plan) {
            owned_call given("case", "", tensors);
            plan_and_launch(given, (gemm::kind)std::stoi(words[1]),
                            (gemm::scale_form)std::stoi(words[2]), numbers(words[3]),
                            words[4]);
        } else {
            owned_call given(words[1], words[2], tensors);
            call_plugin(given, words[0] == "run");
        }
    }
    return 0;
}
