#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_CUDA_LIBRARIES_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_CUDA_LIBRARIES_H_

#include <cublasLt.h>
#include <cudnn.h>
#include <nccl.h>

#include "absl/status/statusor.h"

namespace slipstream::cuda {

/// The functions of cuBLAS, cuDNN and NCCL that are used here, loaded when they are first needed.
/// So a program built with CUDA also runs on machines that lack these libraries, and names the
/// missing library when it needs it. They are searched for in this order: where the loader looks
/// (including LD_LIBRARY_PATH), in $CUDA_HOME or /usr/local/cuda, and in the `nvidia` packages of
/// each Python on PATH or beneath /usr.
///
/// Each library is loaded once per process and stays loaded. Thread-safe.

struct CublasLt {
  /// Loads it. INVALID_ARGUMENT if the library, or a function in it, is missing.
  static absl::StatusOr<const CublasLt*> Load();

  decltype(&::cublasLtCreate) Create;
  decltype(&::cublasLtDestroy) Destroy;
  decltype(&::cublasLtGetStatusString) GetStatusString;
  decltype(&::cublasLtMatmul) Matmul;
  decltype(&::cublasLtMatmulAlgoGetHeuristic) MatmulAlgoGetHeuristic;
  decltype(&::cublasLtMatmulDescCreate) MatmulDescCreate;
  decltype(&::cublasLtMatmulDescDestroy) MatmulDescDestroy;
  decltype(&::cublasLtMatmulDescSetAttribute) MatmulDescSetAttribute;
  decltype(&::cublasLtMatmulPreferenceCreate) MatmulPreferenceCreate;
  decltype(&::cublasLtMatmulPreferenceDestroy) MatmulPreferenceDestroy;
  decltype(&::cublasLtMatmulPreferenceSetAttribute) MatmulPreferenceSetAttribute;
  decltype(&::cublasLtMatrixLayoutCreate) MatrixLayoutCreate;
  decltype(&::cublasLtMatrixLayoutDestroy) MatrixLayoutDestroy;
};

struct Cudnn {
  /// Loads it. INVALID_ARGUMENT if the library, or a function in it, is missing.
  static absl::StatusOr<const Cudnn*> Load();

  decltype(&::cudnnCreate) Create;
  decltype(&::cudnnDestroy) Destroy;
  decltype(&::cudnnSetStream) SetStream;
  decltype(&::cudnnGetErrorString) GetErrorString;
  decltype(&::cudnnCreateTensorDescriptor) CreateTensorDescriptor;
  decltype(&::cudnnDestroyTensorDescriptor) DestroyTensorDescriptor;
  decltype(&::cudnnSetTensor4dDescriptor) SetTensor4dDescriptor;
  decltype(&::cudnnCreateFilterDescriptor) CreateFilterDescriptor;
  decltype(&::cudnnDestroyFilterDescriptor) DestroyFilterDescriptor;
  decltype(&::cudnnSetFilter4dDescriptor) SetFilter4dDescriptor;
  decltype(&::cudnnCreateConvolutionDescriptor) CreateConvolutionDescriptor;
  decltype(&::cudnnDestroyConvolutionDescriptor) DestroyConvolutionDescriptor;
  decltype(&::cudnnSetConvolution2dDescriptor) SetConvolution2dDescriptor;
  decltype(&::cudnnSetConvolutionMathType) SetConvolutionMathType;
  decltype(&::cudnnGetConvolutionForwardAlgorithm_v7) GetConvolutionForwardAlgorithm;
  decltype(&::cudnnGetConvolutionBackwardDataAlgorithm_v7) GetConvolutionBackwardDataAlgorithm;
  decltype(&::cudnnGetConvolutionBackwardFilterAlgorithm_v7) GetConvolutionBackwardFilterAlgorithm;
  decltype(&::cudnnFindConvolutionForwardAlgorithm) FindConvolutionForwardAlgorithm;
  decltype(&::cudnnFindConvolutionBackwardDataAlgorithm) FindConvolutionBackwardDataAlgorithm;
  decltype(&::cudnnFindConvolutionBackwardFilterAlgorithm) FindConvolutionBackwardFilterAlgorithm;
  decltype(&::cudnnGetConvolutionForwardWorkspaceSize) GetConvolutionForwardWorkspaceSize;
  decltype(&::cudnnGetConvolutionBackwardDataWorkspaceSize) GetConvolutionBackwardDataWorkspaceSize;
  decltype(&::cudnnGetConvolutionBackwardFilterWorkspaceSize)
      GetConvolutionBackwardFilterWorkspaceSize;
  decltype(&::cudnnConvolutionForward) ConvolutionForward;
  decltype(&::cudnnConvolutionBackwardData) ConvolutionBackwardData;
  decltype(&::cudnnConvolutionBackwardFilter) ConvolutionBackwardFilter;
};

/// Used only by plans on grouped devices.
struct Nccl {
  /// Loads it. INVALID_ARGUMENT if the library, or a function in it, is missing.
  static absl::StatusOr<const Nccl*> Load();

  decltype(&::ncclCommInitAll) CommInitAll;
  decltype(&::ncclCommDestroy) CommDestroy;
  decltype(&::ncclCommAbort) CommAbort;
  decltype(&::ncclCommGetAsyncError) CommGetAsyncError;
  decltype(&::ncclGetErrorString) GetErrorString;
  decltype(&::ncclGroupStart) GroupStart;
  decltype(&::ncclGroupEnd) GroupEnd;
  decltype(&::ncclReduce) Reduce;
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_CUDA_LIBRARIES_H_
