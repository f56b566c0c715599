// SPDX-License-Identifier: Apache-2.0
// The part of NCCL 2.28's C interface that the simulated GPU offers (tests/sim/nccl): same names,
// values and layouts, so that src/comm compiles and links with it as with the real one. What a call
// does here and what it asks of its caller stands beside it; NVIDIA's user guide has the rest.
#pragma once

#include <cuda_runtime_api.h>

#include <limits.h>
#include <stddef.h>

#define NCCL_MAJOR 2
#define NCCL_MINOR 28
#define NCCL_PATCH 9
#define NCCL_VERSION(major, minor, patch) \
  ((major)*10000 + (minor)*100 + (patch))  // of 2.9 and later
#define NCCL_VERSION_CODE NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH)

#define NCCL_UNIQUE_ID_BYTES 128
#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_UNDEF_PTR NULL
#define NCCL_SPLIT_NOCOLOR -1
#define NCCL_CONFIG_MAGIC 0xcafebeef

#define NCCL_SIM_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ncclComm* ncclComm_t;
typedef struct ncclWindow_vidmem* ncclWindow_t;

#define NCCL_WIN_DEFAULT 0x00
#define NCCL_WIN_COLL_SYMMETRIC 0x01
#define NCCL_WIN_REQUIRED_ALIGNMENT 4096

typedef struct {
  char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
  ncclNumResults = 8
} ncclResult_t;

typedef enum {
  ncclSum = 0,
  ncclProd = 1,
  ncclMax = 2,
  ncclMin = 3,
  ncclAvg = 4,
  ncclNumOps = 5
} ncclRedOp_t;

typedef enum {
  ncclInt8 = 0,
  ncclChar = ncclInt8,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclInt = ncclInt32,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclHalf = ncclFloat16,
  ncclFloat32 = 7,
  ncclFloat = ncclFloat32,
  ncclFloat64 = 8,
  ncclDouble = ncclFloat64,
  ncclBfloat16 = 9,
  ncclFloat8e4m3 = 10,
  ncclFloat8e5m2 = 11,
  ncclNumTypes = 12
} ncclDataType_t;

// Of these `blocking` and `commName` have a meaning here; the others are taken and ignored.
typedef struct {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int blocking;
  int cgaClusterSize;
  int minCTAs;
  int maxCTAs;
  const char* netName;
  int splitShare;
  int trafficClass;
  const char* commName;  // NCCL keeps this pointer and does not copy the text: it must live as long
                         // as the communicator
  int collnetEnable;
  int CTAPolicy;
  int shrinkShare;
  int nvlsCTAs;
  int nChannelsPerNetPeer;
  int nvlinkCentricSched;
} ncclConfig_t;

#define NCCL_CONFIG_INITIALIZER                                                                    \
  {                                                                                                \
    sizeof(ncclConfig_t), NCCL_CONFIG_MAGIC, NCCL_VERSION_CODE, NCCL_CONFIG_UNDEF_INT,             \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,                       \
        NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,                       \
        NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,                       \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT \
  }

NCCL_SIM_API ncclResult_t ncclGetVersion(int* version);
NCCL_SIM_API const char* ncclGetErrorString(ncclResult_t result);
// The last error of any communicator of this process.
NCCL_SIM_API const char* ncclGetLastError(ncclComm_t comm);

// The process that makes an id must live until the communicator is made.
NCCL_SIM_API ncclResult_t ncclGetUniqueId(ncclUniqueId* id);
NCCL_SIM_API ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank);
NCCL_SIM_API ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id,
                                                 int rank, ncclConfig_t* config);
NCCL_SIM_API ncclResult_t ncclCommInitRankScalable(ncclComm_t* comm, int ranks, int rank,
                                                   int ids_count, ncclUniqueId* ids,
                                                   ncclConfig_t* config);
NCCL_SIM_API ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* made,
                                        ncclConfig_t* config);
NCCL_SIM_API ncclResult_t ncclCommFinalize(ncclComm_t comm);
NCCL_SIM_API ncclResult_t ncclCommDestroy(ncclComm_t comm);
NCCL_SIM_API ncclResult_t ncclCommAbort(ncclComm_t comm);
NCCL_SIM_API ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error);
NCCL_SIM_API ncclResult_t ncclCommCount(ncclComm_t comm, int* count);
NCCL_SIM_API ncclResult_t ncclCommUserRank(ncclComm_t comm, int* rank);
NCCL_SIM_API ncclResult_t ncclCommCuDevice(ncclComm_t comm, int* device);

// A window begins where a piece of memory of ncclMemAlloc() does, or within it. It is ended before
// its memory and its communicator. A buffer of a collective is in a window on all members, at the
// same place, or on none.
NCCL_SIM_API ncclResult_t ncclMemAlloc(void** data, size_t bytes);
NCCL_SIM_API ncclResult_t ncclMemFree(void* data);
NCCL_SIM_API ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* data, size_t bytes,
                                                 ncclWindow_t* window, int flags);
NCCL_SIM_API ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window);

NCCL_SIM_API ncclResult_t ncclAllReduce(const void* in, void* out, size_t count,
                                        ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                        cudaStream_t stream);
NCCL_SIM_API ncclResult_t ncclBroadcast(const void* in, void* out, size_t count,
                                        ncclDataType_t type, int root, ncclComm_t comm,
                                        cudaStream_t stream);
NCCL_SIM_API ncclResult_t ncclReduceScatter(const void* in, void* out, size_t out_count,
                                            ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                            cudaStream_t stream);
NCCL_SIM_API ncclResult_t ncclAllGather(const void* in, void* out, size_t in_count,
                                        ncclDataType_t type, ncclComm_t comm, cudaStream_t stream);
NCCL_SIM_API ncclResult_t ncclAlltoAll(const void* in, void* out, size_t count, ncclDataType_t type,
                                       ncclComm_t comm, cudaStream_t stream);
NCCL_SIM_API ncclResult_t ncclSend(const void* in, size_t count, ncclDataType_t type, int peer,
                                   ncclComm_t comm, cudaStream_t stream);
NCCL_SIM_API ncclResult_t ncclRecv(void* out, size_t count, ncclDataType_t type, int peer,
                                   ncclComm_t comm, cudaStream_t stream);

NCCL_SIM_API ncclResult_t ncclGroupStart(void);
NCCL_SIM_API ncclResult_t ncclGroupEnd(void);

#ifdef __cplusplus
}
#endif
