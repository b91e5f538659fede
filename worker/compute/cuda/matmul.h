#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_MATMUL_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_MATMUL_H_

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/precision.h"
#include "worker/compute/cuda/device_context.h"

namespace slipstream::cuda {

/// One matrix product of fixed shapes, with the algorithm that cuBLAS chose for it.
///
/// In row-major terms, as everywhere else here: result[rows, columns] = op(left) op(right), where
/// op(left) is [rows, inner] and op(right) is [inner, columns]; a transposed operand is stored the
/// other way round. (cuBLAS is column-major, so it is given right and left in that order.)
///
/// Operands are fp32, or bf16 if the precision is; results and sums are fp32. Equal inputs give
/// equal bits.
class Matmul {
 public:
  struct Shape {
    uint64_t rows = 0;
    uint64_t columns = 0;
    uint64_t inner = 0;
    bool left_is_transposed = false;
    bool right_is_transposed = false;
  };

  /// The operation on the result before it is written. The bias has a value for each column.
  enum class Epilogue { kNone, kBias, kBiasRelu };

  /// The size of the workspace that Run is given.
  static constexpr size_t kWorkspaceBytes = size_t{32} << 20;

  /// `context` must outlive the product. UNIMPLEMENTED if cuBLAS has no algorithm, perhaps because
  /// of the epilogue.
  static absl::StatusOr<Matmul> Prepare(const DeviceContext& context, const Shape& shape,
                                        Precision precision, Epilogue epilogue);

  /// Enqueues the product on the context's compute stream. Addresses are on the device, and
  /// matrices are aligned to 16 bytes; `bias` is used only if the epilogue has one.
  absl::Status Run(const void* left, const void* right, const float* bias, void* workspace,
                   float* result);

 private:
  struct Operation {
    const CublasLt* blas = nullptr;
    cublasLtMatmulDesc_t description = nullptr;
    cublasLtMatrixLayout_t first = nullptr;   // cuBLAS's A is our right.
    cublasLtMatrixLayout_t second = nullptr;  // cuBLAS's B is our left.
    cublasLtMatrixLayout_t result = nullptr;

    Operation() = default;
    ~Operation();
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;
  };

  Matmul(const DeviceContext& context, std::unique_ptr<Operation> operation)
      : context_(&context), operation_(std::move(operation)) {}

  absl::Status Describe(const Shape& shape, Precision precision, Epilogue epilogue);
  absl::Status ChooseAlgorithm();

  const DeviceContext* context_;
  std::unique_ptr<Operation> operation_;
  cublasLtMatmulAlgo_t algorithm_ = {};
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_MATMUL_H_
