// What CuPy's wheel names of cuSOLVER and the simulated one does not have: each is refused by name.
#include <cstdio>

#include "host/queue.h"

namespace {

int refuse(const char* name) {
    std::fprintf(stderr, "lucid's simulated CUDA devices have no %s; docs/simulator.md lists what there is\n", name);
    return 9;  // CUSOLVER_STATUS_NOT_SUPPORTED
}

}  // namespace

// The assertion takes the semicolon behind a use.
#define REFUSE(NAME)                                \
    LUCID_CUDA int NAME() { return refuse(#NAME); } \
    static_assert(true)
#define REFUSE_SIZED(NAME) \
    REFUSE(NAME);          \
    REFUSE(NAME##_bufferSize)

// Systems that are solved in two precisions, by the letters of both.
#define REFUSE_MIXED(X, Y)                \
    REFUSE_SIZED(cusolverDn##X##Y##gesv); \
    REFUSE_SIZED(cusolverDn##X##Y##gels)
REFUSE_MIXED(S, S);
REFUSE_MIXED(S, H);
REFUSE_MIXED(S, X);
REFUSE_MIXED(D, D);
REFUSE_MIXED(D, S);
REFUSE_MIXED(D, H);
REFUSE_MIXED(D, X);
REFUSE_MIXED(C, C);
REFUSE_MIXED(C, K);
REFUSE_MIXED(C, Y);
REFUSE_MIXED(Z, Z);
REFUSE_MIXED(Z, C);
REFUSE_MIXED(Z, K);
REFUSE_MIXED(Z, Y);

#define REFUSE_TYPE(X, ORMQR, SYEVD, SYEVJ)            \
    REFUSE_SIZED(cusolverDn##X##gebrd);                \
    REFUSE_SIZED(cusolverDn##X##gesvdaStridedBatched); \
    REFUSE_SIZED(cusolverDn##X##gesvdj);               \
    REFUSE_SIZED(cusolverDn##X##sytrf);                \
    REFUSE_SIZED(cusolverDn##X##ORMQR);                \
    REFUSE_SIZED(cusolverDn##X##SYEVD);                \
    REFUSE_SIZED(cusolverDn##X##SYEVJ);                \
    REFUSE(cusolverDn##X##potrs);                      \
    REFUSE(cusolverDn##X##potrsBatched);               \
    REFUSE(cusolverSp##X##csreigvsi);                  \
    REFUSE(cusolverSp##X##csrlsvchol);                 \
    REFUSE(cusolverSp##X##csrlsvqr)
REFUSE_TYPE(S, ormqr, syevd, syevj);
REFUSE_TYPE(D, ormqr, syevd, syevj);
REFUSE_TYPE(C, unmqr, heevd, heevj);
REFUSE_TYPE(Z, unmqr, heevd, heevj);

#define REFUSE_SETTINGS(KIND)                \
    REFUSE(cusolverDnX##KIND##GetResidual);  \
    REFUSE(cusolverDnX##KIND##GetSweeps);    \
    REFUSE(cusolverDnX##KIND##SetMaxSweeps); \
    REFUSE(cusolverDnX##KIND##SetSortEig);   \
    REFUSE(cusolverDnX##KIND##SetTolerance)
REFUSE_SETTINGS(gesvdj);
REFUSE_SETTINGS(syevj);

REFUSE(cusolverSpCreate);
REFUSE(cusolverSpDestroy);
REFUSE(cusolverSpGetStream);
REFUSE(cusolverSpSetStream);
