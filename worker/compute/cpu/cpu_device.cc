#include "worker/compute/cpu/cpu_device.h"

#include <new>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <utility>
#include <variant>

#include "common/model/net_shapes.h"
#include "worker/compute/batch_check.h"
#include "worker/compute/cpu/cpu_plan.h"
#include "worker/compute/cpu/node_choice.h"
#include "worker/compute/cpu/one_thread.h"

namespace slipstream {
namespace {

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(CpuKernels kernels) : kernels_(kernels) {}

  absl::StatusOr<std::unique_ptr<Plan>> Prepare(const ModelSpec& model,
                                                const PlanOptions& options) override {
    if (options.batch_size_max == 0) {
      return absl::InvalidArgumentError("a plan needs at least one example");
    }
    if (options.precision == Precision::kBf16 && !CpuComputesBf16()) {
      return absl::InvalidArgumentError(
          "this processor cannot compute in bf16, which takes AVX-512 BF16: start this worker with "
          "--precision fp32, or set compute.precision to fp32");
    }
    if (options.precision == Precision::kTf32) {
      return absl::InvalidArgumentError(
          "processors do not compute in tf32, GPUs do: start this worker with --precision fp32, or "
          "set compute.precision to fp32");
    }
    std::variant<NetShapes, ShapeError> inferred = InferShapes(model);
    if (const auto* error = std::get_if<ShapeError>(&inferred)) {
      return absl::InvalidArgumentError(error->Text());
    }
    const NetShapes& shapes = std::get<NetShapes>(inferred);
    const OneThreadScope one_thread;
    try {
      return std::make_unique<CpuPlan>(NetSizes::Of(model, shapes),
                                       ChooseNodes(model, shapes, options, kernels_), options);
    } catch (const std::bad_alloc&) {
      return absl::ResourceExhaustedError("no memory for a plan of about " +
                                          std::to_string(CpuPlan::BytesAtLeast(shapes, options)) +
                                          " bytes");
    } catch (const dnnl::error& error) {
      return absl::InternalError(std::string("oneDNN: ") + error.what());
    }
  }

 private:
  const CpuKernels kernels_;
};

}  // namespace

bool CpuComputesBf16() { return __builtin_cpu_supports("avx512bf16") != 0; }

std::unique_ptr<Device> NewCpuDevice(CpuKernels kernels) {
  return std::make_unique<CpuDevice>(kernels);
}

}  // namespace slipstream
