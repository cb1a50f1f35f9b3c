// What CuPy's wheel names of cuSPARSE and the simulated one does not have.
#include "libraries/absent.h"

static thread_local std::string refused;
// CUSPARSE_STATUS_NOT_SUPPORTED, whose text CuPy asks for.
static int refuse(const std::string& words) { return refused = words, 10; }
LUCID_CUDA const char* cusparseGetErrorName(int status) {
    constexpr const char* names[] = {"SUCCESS",          "NOT_INITIALIZED", "ALLOC_FAILED",
                                     "INVALID_VALUE",    "ARCH_MISMATCH",   "MAPPING_ERROR",
                                     "EXECUTION_FAILED", "INTERNAL_ERROR",  "MATRIX_TYPE_NOT_SUPPORTED",
                                     "ZERO_PIVOT",       "NOT_SUPPORTED",   "INSUFFICIENT_RESOURCES"};
    static thread_local std::string name;
    if (status < 0 || status >= (int)(sizeof names / sizeof *names)) return "unrecognized error code";
    return name = std::string("CUSPARSE_STATUS_") + names[status], name.c_str();
}
LUCID_CUDA const char* cusparseGetErrorString(int status) {
    return status == 10 && !refused.empty() ? refused.c_str() : cusparseGetErrorName(status);
}

#define REFUSE_EXTENDED(NAME) \
    REFUSE(NAME);             \
    REFUSE(NAME##_bufferSizeExt)
#define REFUSE_ANALYSED(NAME) \
    REFUSE_SIZED(NAME);       \
    REFUSE(NAME##_analysis)

#define REFUSE_TYPE(X)                                  \
    REFUSE(cusparse##X##nnz);                           \
    REFUSE(cusparse##X##bsrilu02_numericBoost);         \
    REFUSE(cusparse##X##csrilu02_numericBoost);         \
    REFUSE_ANALYSED(cusparse##X##bsric02);              \
    REFUSE_ANALYSED(cusparse##X##bsrilu02);             \
    REFUSE_ANALYSED(cusparse##X##csric02);              \
    REFUSE_ANALYSED(cusparse##X##csrilu02);             \
    REFUSE_EXTENDED(cusparse##X##gpsvInterleavedBatch); \
    REFUSE_EXTENDED(cusparse##X##gtsv2);                \
    REFUSE_EXTENDED(cusparse##X##gtsv2StridedBatch);    \
    REFUSE_EXTENDED(cusparse##X##gtsv2_nopivot);        \
    REFUSE_EXTENDED(cusparse##X##gtsvInterleavedBatch)
REFUSE_TYPE(S);
REFUSE_TYPE(D);
REFUSE_TYPE(C);
REFUSE_TYPE(Z);

#define REFUSE_INFO(KIND, LETTERS)       \
    REFUSE(cusparseCreate##KIND##Info);  \
    REFUSE(cusparseDestroy##KIND##Info); \
    REFUSE(cusparseX##LETTERS##_zeroPivot)
REFUSE_INFO(Bsric02, bsric02);
REFUSE_INFO(Bsrilu02, bsrilu02);
REFUSE_INFO(Csric02, csric02);
REFUSE_INFO(Csrilu02, csrilu02);

REFUSE(cusparseDnMatGetStridedBatch);
REFUSE(cusparseDnMatSetStridedBatch);
REFUSE(cusparseSpMatGetStridedBatch);
REFUSE_SIZED(cusparseSpVV);
// CuPy looks for these by name when it calls them.
REFUSE_SIZED(cusparseConstrainedGeMM);
REFUSE_SIZED(cusparseSDDMM);
REFUSE(cusparseSpGEAM_createDescr);
