// What CuPy's wheel names of cuSOLVER and the simulated one does not have.
#include <cstdio>

#include "libraries/absent.h"

// Told on the standard error, as cuSOLVER answers with a number alone: CUSOLVER_STATUS_NOT_SUPPORTED.
static int refuse(const std::string& words) { return std::fprintf(stderr, "%s\n", words.c_str()), 9; }

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
    REFUSE(cusolverSp##X##csrlsvchol)
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
