// The part of cuBLAS that Slipstream uses: products of column-major matrices, with a bias and a
// ReLU.

#include <cublasLt.h>
#include <cuda_bf16.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/gpu/simulated/library_calls.h"
#include "tests/gpu/simulated/memory.h"
#include "tests/gpu/simulated/streams.h"
#include "worker/compute/cuda/cuda_libraries.h"

namespace slipstream::simulated {
namespace {

constexpr uintptr_t kAlignment = 16;
constexpr size_t kWorkspaceBytes = size_t{1} << 20;

struct Layout {
  cudaDataType type;
  uint64_t rows;
  uint64_t columns;
  uint64_t stride;  // The distance between columns.

  size_t bytes() const { return stride * columns * (type == CUDA_R_16BF ? 2 : 4); }
};

struct Description {
  cublasComputeType_t compute;
  cublasOperation_t first = CUBLAS_OP_N;
  cublasOperation_t second = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const float* bias = nullptr;
};

/// A product with all its parameters.
struct Product {
  Description description;
  Layout first;
  Layout second;
  Layout result;
  const void* a;
  const void* b;
  float* d;
  void* workspace;

  bool is_transposed(cublasOperation_t operation) const { return operation == CUBLAS_OP_T; }
  uint64_t rows() const { return is_transposed(description.first) ? first.columns : first.rows; }
  uint64_t inner() const { return is_transposed(description.first) ? first.rows : first.columns; }
  uint64_t columns() const {
    return is_transposed(description.second) ? second.rows : second.columns;
  }

  bool Fits() const {
    const uint64_t second_inner = is_transposed(description.second) ? second.columns : second.rows;
    return second_inner == inner() && result.rows == rows() && result.columns == columns() &&
           result.type == CUDA_R_32F && first.type == second.type;
  }

  std::vector<float> Operand(const void* values, const Layout& layout,
                             cublasOperation_t operation) const;
  void Run() const;

  std::vector<uint64_t> Kind() const {
    return {rows(),
            columns(),
            inner(),
            static_cast<uint64_t>(description.first),
            static_cast<uint64_t>(description.second),
            static_cast<uint64_t>(description.epilogue)};
  }
};

bool HasBias(cublasLtEpilogue_t epilogue) { return epilogue != CUBLASLT_EPILOGUE_DEFAULT; }

/// Returns the operand column-major without gaps, and transposed if `operation` says so.
std::vector<float> Product::Operand(const void* values, const Layout& layout,
                                    cublasOperation_t operation) const {
  const bool rounds = description.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  std::vector<float> operand(layout.rows * layout.columns);
  for (uint64_t column = 0; column < layout.columns; ++column) {
    for (uint64_t row = 0; row < layout.rows; ++row) {
      const uint64_t at = column * layout.stride + row;
      const float value = layout.type == CUDA_R_16BF
                              ? __bfloat162float(static_cast<const __nv_bfloat16*>(values)[at])
                              : static_cast<const float*>(values)[at];
      operand[is_transposed(operation) ? row * layout.columns + column
                                       : column * layout.rows + row] =
          rounds ? AsTf32(value) : value;
    }
  }
  return operand;
}

void Product::Run() const {
  Spoil(workspace, kWorkspaceBytes);
  const std::vector<float> left = Operand(a, first, description.first);
  const std::vector<float> right = Operand(b, second, description.second);
  for (uint64_t column = 0; column < columns(); ++column) {
    float* const sums = d + column * result.stride;
    std::fill_n(sums, rows(), 0.0f);
    for (uint64_t i = 0; i < inner(); ++i) {
      const float factor = right[column * inner() + i];
      const float* const values = left.data() + i * rows();
      for (uint64_t row = 0; row < rows(); ++row) sums[row] += factor * values[row];
    }
    if (!HasBias(description.epilogue)) continue;
    for (uint64_t row = 0; row < rows(); ++row) {
      sums[row] += description.bias[row];
      // A NaN becomes 0, as users of the real library report.
      if (description.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS)
        sums[row] = sums[row] > 0 ? sums[row] : 0.0f;
    }
  }
}

bool IsUsable(const void* values, size_t bytes) {
  return reinterpret_cast<uintptr_t>(values) % kAlignment == 0 && IsOnDevice(values, bytes);
}

cublasStatus_t Create(cublasLtHandle_t* handle) {
  *handle = Given<cublasLtHandle_t>(new LibraryHandle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t Destroy(cublasLtHandle_t handle) {
  delete &Of<LibraryHandle>(handle);
  return CUBLAS_STATUS_SUCCESS;
}

const char* GetStatusString(cublasStatus_t) { return "refused by the simulated cuBLAS"; }

cublasStatus_t Matmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description, const void* alpha,
                      const void* a, cublasLtMatrixLayout_t first, const void* b,
                      cublasLtMatrixLayout_t second, const void* beta, const void* c,
                      cublasLtMatrixLayout_t, void* d, cublasLtMatrixLayout_t result,
                      const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                      size_t workspace_bytes, cudaStream_t stream) {
  const Product product = {
      Of<Description>(description), Of<Layout>(first), Of<Layout>(second), Of<Layout>(result), a, b,
      static_cast<float*>(d),       workspace};
  const bool is_plain = IsHere(handle) && *static_cast<const float*>(alpha) == 1 &&
                        *static_cast<const float*>(beta) == 0 && c == d && algorithm != nullptr;
  const bool has_bias = HasBias(product.description.epilogue);
  const bool is_usable =
      IsUsable(a, product.first.bytes()) && IsUsable(b, product.second.bytes()) &&
      IsUsable(d, product.result.bytes()) && IsUsable(workspace, workspace_bytes) &&
      (!has_bias || IsUsable(product.description.bias, product.rows() * sizeof(float)));
  if (!is_plain || !is_usable || !product.Fits() || workspace_bytes < kWorkspaceBytes) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (!Of<LibraryHandle>(handle).MayCall(stream, product.Kind())) {
    return CUBLAS_STATUS_NOT_INITIALIZED;
  }
  const cudaError_t error = Enqueue(stream, [product] { product.Run(); });
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

cublasStatus_t MatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                                      cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                      cublasLtMatrixLayout_t, cublasLtMatrixLayout_t result,
                                      cublasLtMatmulPreference_t, int,
                                      cublasLtMatmulHeuristicResult_t results[], int* count) {
  if (!IsHere(handle)) return CUBLAS_STATUS_INVALID_VALUE;
  // Refuse the epilogue for some shapes, so that callers have to do without it.
  if (HasBias(Of<Description>(description).epilogue) && Of<Layout>(result).rows % 16 == 3) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  results[0] = {};
  results[0].workspaceSize = kWorkspaceBytes;
  results[0].state = CUBLAS_STATUS_SUCCESS;
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t MatmulDescCreate(cublasLtMatmulDesc_t* description, cublasComputeType_t compute,
                                cudaDataType_t scale) {
  if (scale != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  *description = Given<cublasLtMatmulDesc_t>(new Description{compute});
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t MatmulDescDestroy(cublasLtMatmulDesc_t description) {
  delete &Of<Description>(description);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t Set(T& member, const void* value, size_t bytes) {
  if (bytes != sizeof(member)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&member, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t MatmulDescSetAttribute(cublasLtMatmulDesc_t description,
                                      cublasLtMatmulDescAttributes_t attribute, const void* value,
                                      size_t bytes) {
  Description& set = Of<Description>(description);
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return Set(set.first, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return Set(set.second, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return Set(set.epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return Set(set.bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return bytes == sizeof(cudaDataType) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t MatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = Given<cublasLtMatmulPreference_t>(new int);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t MatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete &Of<int>(preference);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t MatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                            cublasLtMatmulPreferenceAttributes_t attribute,
                                            const void*, size_t bytes) {
  const size_t expected =
      attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES ? sizeof(uint64_t) : sizeof(uint32_t);
  return bytes == expected ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t MatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows,
                                  uint64_t columns, int64_t stride) {
  if (static_cast<uint64_t>(stride) < rows) return CUBLAS_STATUS_INVALID_VALUE;
  *layout =
      Given<cublasLtMatrixLayout_t>(new Layout{type, rows, columns, static_cast<uint64_t>(stride)});
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t MatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete &Of<Layout>(layout);
  return CUBLAS_STATUS_SUCCESS;
}

constexpr cuda::CublasLt kTable = {
    .Create = Create,
    .Destroy = Destroy,
    .GetStatusString = GetStatusString,
    .Matmul = Matmul,
    .MatmulAlgoGetHeuristic = MatmulAlgoGetHeuristic,
    .MatmulDescCreate = MatmulDescCreate,
    .MatmulDescDestroy = MatmulDescDestroy,
    .MatmulDescSetAttribute = MatmulDescSetAttribute,
    .MatmulPreferenceCreate = MatmulPreferenceCreate,
    .MatmulPreferenceDestroy = MatmulPreferenceDestroy,
    .MatmulPreferenceSetAttribute = MatmulPreferenceSetAttribute,
    .MatrixLayoutCreate = MatrixLayoutCreate,
    .MatrixLayoutDestroy = MatrixLayoutDestroy,
};

}  // namespace
}  // namespace slipstream::simulated

namespace slipstream::cuda {

absl::StatusOr<const CublasLt*> CublasLt::Load() { return &simulated::kTable; }

}  // namespace slipstream::cuda
