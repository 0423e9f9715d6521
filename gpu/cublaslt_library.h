/* SPDX-License-Identifier: MIT */
/* The functions of libcublasLt that cublaslt.cu calls, taken at run time from the library
 * that is there. Types and numbers come from NVIDIA's header; nothing is linked. */
#ifndef ASSAY_GPU_CUBLASLT_LIBRARY_H
#define ASSAY_GPU_CUBLASLT_LIBRARY_H

#include <cublasLt.h>
#include <dlfcn.h>
#include <string>

struct cublaslt_library {
    decltype(&cublasLtGetVersion) get_version;
    decltype(&cublasLtGetStatusName) get_status_name;
    decltype(&cublasLtCreate) create;
    decltype(&cublasLtDestroy) destroy;
    decltype(&cublasLtMatmulDescCreate) operation_create;
    decltype(&cublasLtMatmulDescDestroy) operation_destroy;
    decltype(&cublasLtMatmulDescSetAttribute) operation_set;
    decltype(&cublasLtMatrixLayoutCreate) layout_create;
    decltype(&cublasLtMatrixLayoutDestroy) layout_destroy;
    decltype(&cublasLtMatmulPreferenceCreate) preference_create;
    decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy;
    decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set;
    decltype(&cublasLtMatmulAlgoGetHeuristic) get_heuristic;
    decltype(&cublasLtMatmul) matmul;

    /* Opens the library of that path, or, should it be empty, by the names that have FP8.
     * False: @why says what went wrong. A library stays open as long as the process. */
    bool open(const std::string &path, std::string *why);

  private:
    void *library = nullptr;

    bool open_file(const char *name, std::string *why);
    bool find_all(std::string *why);
    template <typename Function>
    bool find(Function *&function, const char *name, std::string *why);
};

inline bool cublaslt_library::open_file(const char *name, std::string *why)
{
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) *why += (why->empty() ? "" : "; ") + std::string(dlerror());
    return library;
}

template <typename Function>
bool cublaslt_library::find(Function *&function, const char *name, std::string *why)
{
    function = reinterpret_cast<Function *>(dlsym(library, name));
    if (!function) *why = std::string("the library has no ") + name;
    return function;
}

inline bool cublaslt_library::find_all(std::string *why)
{
    return find(get_version, "cublasLtGetVersion", why) &&
           find(get_status_name, "cublasLtGetStatusName", why) &&
           find(create, "cublasLtCreate", why) && find(destroy, "cublasLtDestroy", why) &&
           find(operation_create, "cublasLtMatmulDescCreate", why) &&
           find(operation_destroy, "cublasLtMatmulDescDestroy", why) &&
           find(operation_set, "cublasLtMatmulDescSetAttribute", why) &&
           find(layout_create, "cublasLtMatrixLayoutCreate", why) &&
           find(layout_destroy, "cublasLtMatrixLayoutDestroy", why) &&
           find(preference_create, "cublasLtMatmulPreferenceCreate", why) &&
           find(preference_destroy, "cublasLtMatmulPreferenceDestroy", why) &&
           find(preference_set, "cublasLtMatmulPreferenceSetAttribute", why) &&
           find(get_heuristic, "cublasLtMatmulAlgoGetHeuristic", why) &&
           find(matmul, "cublasLtMatmul", why);
}

inline bool cublaslt_library::open(const std::string &path, std::string *why)
{
    why->clear();
    const bool is_open = !path.empty() ? open_file(path.c_str(), why)
                                       : open_file("libcublasLt.so.13", why) ||
                                             open_file("libcublasLt.so.12", why);
    return is_open && find_all(why);
}

#endif
