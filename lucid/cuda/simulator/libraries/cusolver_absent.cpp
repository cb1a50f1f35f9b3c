// What CuPy's wheel names of cuSOLVER and the simulated one does not have: each is refused by name.
#include <cstdio>

#include "host/queue.h"

#define REFUSE(NAME)                                                                                               \
    LUCID_CUDA int NAME() {                                                                                        \
        std::fprintf(stderr,                                                                                       \
                     "lucid's simulated CUDA devices have no " #NAME "; docs/simulator.md lists what there is\n"); \
        return 9; /* CUSOLVER_STATUS_NOT_SUPPORTED */                                                              \
    }
#define REFUSE_SIZED(NAME) REFUSE(NAME) REFUSE(NAME##_bufferSize)

// Systems that are solved in two precisions, by the letters of both.
#define REFUSE_MIXED(XY) REFUSE_SIZED(cusolverDn##XY##gesv) REFUSE_SIZED(cusolverDn##XY##gels)
REFUSE_MIXED(CC)
REFUSE_MIXED(CK)
REFUSE_MIXED(CY) REFUSE_MIXED(DD) REFUSE_MIXED(DH) REFUSE_MIXED(DS) REFUSE_MIXED(DX) REFUSE_MIXED(SH) REFUSE_MIXED(SS)
    REFUSE_MIXED(SX) REFUSE_MIXED(ZC) REFUSE_MIXED(ZK) REFUSE_MIXED(ZY) REFUSE_MIXED(ZZ)

#define REFUSE_TYPE(X, ORMQR, SYEVD, SYEVJ)           \
    REFUSE_SIZED(cusolverDn##X##gebrd)                \
    REFUSE_SIZED(cusolverDn##X##gesvdaStridedBatched) \
    REFUSE_SIZED(cusolverDn##X##gesvdj)               \
    REFUSE_SIZED(cusolverDn##X##sytrf)                \
    REFUSE_SIZED(cusolverDn##X##ORMQR)                \
    REFUSE_SIZED(cusolverDn##X##SYEVD)                \
    REFUSE_SIZED(cusolverDn##X##SYEVJ)                \
    REFUSE(cusolverDn##X##potrs)                      \
    REFUSE(cusolverDn##X##potrsBatched)               \
    REFUSE(cusolverSp##X##csreigvsi)                  \
    REFUSE(cusolverSp##X##csrlsvchol)                 \
    REFUSE(cusolverSp##X##csrlsvqr)
        REFUSE_TYPE(S, ormqr, syevd, syevj) REFUSE_TYPE(D, ormqr, syevd, syevj) REFUSE_TYPE(C, unmqr, heevd, heevj)
            REFUSE_TYPE(Z, unmqr, heevd, heevj)

#define REFUSE_SETTINGS(KIND)               \
    REFUSE(cusolverDnX##KIND##GetResidual)  \
    REFUSE(cusolverDnX##KIND##GetSweeps)    \
    REFUSE(cusolverDnX##KIND##SetMaxSweeps) \
    REFUSE(cusolverDnX##KIND##SetSortEig)   \
    REFUSE(cusolverDnX##KIND##SetTolerance)
                REFUSE_SETTINGS(gesvdj) REFUSE_SETTINGS(syevj)

                    REFUSE(cusolverSpCreate) REFUSE(cusolverSpDestroy) REFUSE(cusolverSpGetStream)
                        REFUSE(cusolverSpSetStream)
