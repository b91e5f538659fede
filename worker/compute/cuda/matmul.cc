#include "worker/compute/cuda/matmul.h"

#include <string>

#include "worker/compute/cuda/cuda_status.h"

namespace slipstream::cuda {
namespace {

// The alignment of every matrix and bias, in bytes: that of vector loads, which suffices for all
// algorithms.
constexpr size_t kAlignment = 16;

cudaDataType OperandType(Precision precision) {
  return precision == Precision::kBf16 ? CUDA_R_16BF : CUDA_R_32F;
}

cublasComputeType_t ComputeType(Precision precision) {
  return precision == Precision::kTf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

cublasLtEpilogue_t EpilogueOf(Matmul::Epilogue epilogue) {
  switch (epilogue) {
    case Matmul::Epilogue::kNone:
      return CUBLASLT_EPILOGUE_DEFAULT;
    case Matmul::Epilogue::kBias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Matmul::Epilogue::kBiasRelu:
      return CUBLASLT_EPILOGUE_RELU_BIAS;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

}  // namespace

Matmul::Operation::~Operation() {
  if (description != nullptr) (void)blas->MatmulDescDestroy(description);
  for (cublasLtMatrixLayout_t layout : {first, second, result}) {
    if (layout != nullptr) (void)blas->MatrixLayoutDestroy(layout);
  }
}

absl::StatusOr<Matmul> Matmul::Prepare(const DeviceContext& context, const Shape& shape,
                                       Precision precision, Epilogue epilogue) {
  Matmul matmul(context, std::make_unique<Operation>());
  matmul.operation_->blas = &context.blas();
  PS_RETURN_IF_ERROR(matmul.Describe(shape, precision, epilogue));
  PS_RETURN_IF_ERROR(matmul.ChooseAlgorithm());
  return matmul;
}

absl::Status Matmul::Describe(const Shape& shape, Precision precision, Epilogue epilogue) {
  const CublasLt& blas = context_->blas();
  Operation& operation = *operation_;
  PS_RETURN_IF_CUDA_ERROR(
      blas.MatmulDescCreate(&operation.description, ComputeType(precision), CUDA_R_32F));
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    return PS_CUDA_STATUS(
        blas.MatmulDescSetAttribute(operation.description, attribute, &value, sizeof(value)));
  };
  // A row-major matrix is a column-major one transposed, and (L R)ᵀ = Rᵀ Lᵀ.
  const cublasOperation_t first = shape.right_is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t second = shape.left_is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  PS_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_DESC_TRANSA, first));
  PS_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_DESC_TRANSB, second));
  PS_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_DESC_EPILOGUE, EpilogueOf(epilogue)));
  if (epilogue != Epilogue::kNone) {
    PS_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_32F));
    // The choice of an algorithm depends on the bias's alignment; Run sets the address itself.
    const uintptr_t aligned = kAlignment;
    PS_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, aligned));
  }
  const auto layout = [&](cublasLtMatrixLayout_t& matrix, cudaDataType type, uint64_t stored_rows,
                          uint64_t stored_columns) {
    return PS_CUDA_STATUS(blas.MatrixLayoutCreate(&matrix, type, stored_columns, stored_rows,
                                                  static_cast<int64_t>(stored_columns)));
  };
  const cudaDataType operands = OperandType(precision);
  PS_RETURN_IF_ERROR(layout(operation.first, operands,
                            shape.right_is_transposed ? shape.columns : shape.inner,
                            shape.right_is_transposed ? shape.inner : shape.columns));
  PS_RETURN_IF_ERROR(layout(operation.second, operands,
                            shape.left_is_transposed ? shape.inner : shape.rows,
                            shape.left_is_transposed ? shape.rows : shape.inner));
  return layout(operation.result, CUDA_R_32F, shape.rows, shape.columns);
}

absl::Status Matmul::ChooseAlgorithm() {
  const CublasLt& blas = context_->blas();
  const Operation& operation = *operation_;
  cublasLtMatmulPreference_t preference = nullptr;
  PS_RETURN_IF_CUDA_ERROR(blas.MatmulPreferenceCreate(&preference));
  const std::unique_ptr<cublasLtMatmulPreferenceOpaque_t,
                        decltype(&::cublasLtMatmulPreferenceDestroy)>
      owned(preference, blas.MatmulPreferenceDestroy);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    return PS_CUDA_STATUS(
        blas.MatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value)));
  };
  const uint64_t workspace = kWorkspaceBytes;
  PS_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace));
  const uint32_t alignment = kAlignment;
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    PS_RETURN_IF_ERROR(set(attribute, alignment));
  }
  cublasLtMatmulHeuristicResult_t found = {};
  int results = 0;
  const cublasStatus_t searched = blas.MatmulAlgoGetHeuristic(
      context_->blas_handle(), operation.description, operation.first, operation.second,
      operation.result, operation.result, preference, 1, &found, &results);
  // If cuBLAS does not support an epilogue for these types, it reports an invalid value.
  const bool is_unknown =
      searched == CUBLAS_STATUS_NOT_SUPPORTED || searched == CUBLAS_STATUS_INVALID_VALUE;
  if (is_unknown || (searched == CUBLAS_STATUS_SUCCESS && results == 0)) {
    return absl::UnimplementedError("cuBLAS has no algorithm for a product");
  }
  PS_RETURN_IF_ERROR(ToStatus(searched, {__FILE__, __LINE__, "cublasLtMatmulAlgoGetHeuristic"}));
  PS_RETURN_IF_ERROR(ToStatus(found.state, {__FILE__, __LINE__, "cublasLtMatmulAlgoGetHeuristic"}));
  algorithm_ = found.algo;
  return absl::OkStatus();
}

absl::Status Matmul::Run(const void* left, const void* right, const float* bias, void* workspace,
                         float* result) {
  const CublasLt& blas = context_->blas();
  const Operation& operation = *operation_;
  if (bias != nullptr) {
    PS_RETURN_IF_CUDA_ERROR(blas.MatmulDescSetAttribute(
        operation.description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias)));
  }
  const float one = 1;
  const float zero = 0;
  return PS_CUDA_STATUS(blas.Matmul(context_->blas_handle(), operation.description, &one, right,
                                    operation.first, left, operation.second, &zero, result,
                                    operation.result, result, operation.result, &algorithm_,
                                    workspace, kWorkspaceBytes, context_->compute()));
}

}  // namespace slipstream::cuda
