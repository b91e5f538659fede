#include "worker/compute/cuda/cuda_plan.h"

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "worker/compute/cuda/cuda_status.h"

namespace slipstream::cuda {
namespace {

/// A device that fails does not raise flags; it is asked this often.
constexpr absl::Duration kQueryInterval = absl::Milliseconds(1);

}  // namespace

absl::StatusOr<std::unique_ptr<Plan>> CudaPlan::New(int device, const NetLayers& layers,
                                                    const NetSizes& net,
                                                    const PlanOptions& options) {
  absl::StatusOr<std::unique_ptr<DeviceContext>> context = DeviceContext::Open(device);
  if (!context.ok()) return context.status();
  std::unique_ptr<CudaPlan> plan(new CudaPlan(*std::move(context), net, MapOf(layers), options));
  auto nodes = MakeNodes(*plan->context_, layers, plan->map_, options);
  if (!nodes.ok()) return nodes.status();
  plan->nodes_ = *std::move(nodes);
  auto memory = PlanMemory::Allocate(net, plan->map_, plan->nodes_, options);
  if (!memory.ok()) return memory.status();
  plan->memory_ = *std::move(memory);
  if (options.trains) {
    PS_RETURN_IF_ERROR(
        Keep(plan->coming_, ComingBatches::Allocate(*plan->context_, net, plan->block_)));
  }
  // Now, so that what cannot be computed is known before a run begins.
  const auto graphs = plan->GraphsFor(options.trains ? plan->training_ : plan->evaluating_,
                                      options.batch_size_max, options.trains);
  if (!graphs.ok()) return graphs.status();
  return plan;
}

CudaPlan::~CudaPlan() {
  // Nothing may be under way when memory goes; whether that went well matters no longer.
  (void)context_->Enter();
  for (cudaStream_t stream : {context_->compute(), context_->upload(), context_->download()}) {
    (void)cudaStreamSynchronize(stream);
  }
}

void CudaPlan::WeightsArrived(ParameterRange range) {
  KeepUploadFailure(Upload(range));
  gate_.Arrived(range);
}

absl::Status CudaPlan::Upload(ParameterRange range) {
  PS_RETURN_IF_ERROR(context_->Enter());
  absl::Status status;
  map_.ForEachPart(range, [&](size_t host, size_t device, size_t size) {
    status.Update(PS_CUDA_STATUS(
        cudaMemcpyAsync(memory_.weights.data() + device, memory_.weights_host.data() + host,
                        size * sizeof(float), cudaMemcpyHostToDevice, context_->upload())));
  });
  return status;
}

void CudaPlan::KeepUploadFailure(const absl::Status& status) {
  if (status.ok()) return;
  MutexLock lock(upload_mutex_);
  upload_failure_.Update(status);
}

absl::Status CudaPlan::JoinUploads() {
  {
    MutexLock lock(upload_mutex_);
    PS_RETURN_IF_ERROR(upload_failure_);
  }
  return context_->Order(context_->upload(), context_->compute());
}

absl::Status CudaPlan::AwaitUploads() const {
  PS_RETURN_IF_ERROR(context_->Enter());
  return DeviceContext::Await(context_->upload());
}

void CudaPlan::ExpectWeights() {
  gate_.Expect();
  // Until the last of them is up, weights_host() may not be written.
  KeepUploadFailure(AwaitUploads());
}

void CudaPlan::RevokeWeights(ParameterRange range) {
  gate_.Revoke(range);
  KeepUploadFailure(AwaitUploads());
}

absl::StatusOr<const PassGraphs*> CudaPlan::GraphsFor(BatchPrograms<PassGraphs>& programs,
                                                      uint32_t count, bool training) {
  if (const PassGraphs* found = programs.Find(count)) return found;
  const PassParts parts = {*context_, net_, map_, block_, memory_, nodes_};
  absl::StatusOr<std::unique_ptr<PassGraphs>> graphs = PassGraphs::Capture(parts, count, training);
  if (!graphs.ok()) return graphs.status();
  return &programs.Add(count, *std::move(graphs));
}

std::optional<BatchSpace> CudaPlan::NewBatch(uint32_t count) {
  if (coming_ == nullptr || count == 0 || count > options_.batch_size_max) return std::nullopt;
  return coming_->New(count);
}

void CudaPlan::OfferBatch() {
  // One that could not be sent up is not there, and goes up with its step, which says what is wrong
  // with the device.
  (void)coming_->Offer();
}

absl::Status CudaPlan::Bring(const Batch& batch) {
  const PassInputs inputs = {.batch_index = batch.index, .pass = ++pass_};
  std::memcpy(memory_.batch_host.data(), &inputs, sizeof(inputs));
  const bool is_there = coming_ != nullptr && coming_->Has(batch);
  size_t bytes = sizeof(inputs);
  if (!is_there) {
    Stage(batch);
    bytes = block_.BytesOf(static_cast<uint32_t>(batch.examples.size() / net_.inputs));
  }
  PS_RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(memory_.batch.data(), memory_.batch_host.data(), bytes,
                                          cudaMemcpyHostToDevice, context_->compute()));
  return is_there ? coming_->Bring(batch, memory_.batch.data()) : absl::OkStatus();
}

void CudaPlan::Stage(const Batch& batch) {
  std::byte* block = memory_.batch_host.data();
  if (net_.loss == ModelSpec::Loss::kCrossEntropy) {
    std::memcpy(block + block_.answers, batch.labels.data(), batch.labels.size_bytes());
  } else {
    std::memcpy(block + block_.answers, batch.targets.data(), batch.targets.size_bytes());
  }
  std::memcpy(block + block_.examples, batch.examples.data(), batch.examples.size_bytes());
}

absl::Status CudaPlan::StartStep(const Batch& batch, GradientListener* listener) {
  if (!options_.trains) return absl::FailedPreconditionError("the plan only evaluates");
  if (started_.has_value()) return absl::FailedPreconditionError("a step is under way");
  const absl::StatusOr<uint32_t> count = CheckBatch(net_, options_.batch_size_max, batch);
  if (!count.ok()) return count.status();
  PS_RETURN_IF_ERROR(context_->Enter());
  const absl::StatusOr<const PassGraphs*> graphs = GraphsFor(training_, *count, true);
  if (!graphs.ok()) return graphs.status();
  gate_.Enter();
  absl::Status launched = Bring(batch);
  if (launched.ok()) launched = Launch(**graphs);
  if (launched.ok()) {
    started_ = {*graphs, listener, *count};
    return absl::OkStatus();
  }
  // Its batch is written over by the next one.
  const absl::Status ended = DeviceContext::Await(context_->compute());
  const bool may_have_mixed = !gate_.Leave();
  PS_RETURN_IF_ERROR(ended);
  return may_have_mixed ? absl::CancelledError("the weights were replaced") : launched;
}

absl::Status CudaPlan::Launch(const PassGraphs& graphs) {
  const ParameterRange all = {0, net_.parameters};
  const cudaStream_t stream = context_->compute();
  if (gate_.Has(all)) {
    PS_RETURN_IF_ERROR(JoinUploads());
    return graphs.whole().Launch(stream);
  }
  const absl::Status cancelled = absl::CancelledError("the weights did not come");
  for (const PassGraphs::Segment& segment : graphs.forward()) {
    if (!gate_.Await(segment.reads)) return cancelled;
    PS_RETURN_IF_ERROR(JoinUploads());
    PS_RETURN_IF_ERROR(segment.graph.Launch(stream));
  }
  // Also what no layer read, if there is such: the gradient may be written only then.
  if (!gate_.Await(all)) return cancelled;
  PS_RETURN_IF_ERROR(JoinUploads());
  return graphs.rest().Launch(stream);
}

absl::StatusOr<StepResult> CudaPlan::FinishStep() {
  if (!started_.has_value()) return absl::FailedPreconditionError("no step was started");
  const Started started = *std::exchange(started_, std::nullopt);
  absl::StatusOr<StepResult> result = Await(started);
  if (result.ok()) result->waited = gate_.waited();
  const bool may_have_mixed = !gate_.Leave();
  if (result.ok() && may_have_mixed) return absl::CancelledError("the weights were replaced");
  return result;
}

absl::StatusOr<StepResult> CudaPlan::Await(const Started& started) {
  PS_RETURN_IF_ERROR(context_->Enter());
  PS_RETURN_IF_ERROR(AwaitFlag(0));
  StepResult result = ResultOf(started.count);
  result.forward_end = absl::Now();
  const std::vector<ParameterRange>& ranges = started.graphs->ranges();
  for (size_t i = 0; i < ranges.size(); ++i) {
    PS_RETURN_IF_ERROR(AwaitFlag(i + 1));
    if (started.listener != nullptr) started.listener->OnGradientReady(ranges[i]);
  }
  return result;
}

absl::StatusOr<StepResult> CudaPlan::Evaluate(const Batch& batch) {
  if (started_.has_value()) return absl::FailedPreconditionError("a step is under way");
  const absl::StatusOr<uint32_t> count = CheckBatch(net_, options_.batch_size_max, batch);
  if (!count.ok()) return count.status();
  PS_RETURN_IF_ERROR(context_->Enter());
  const absl::StatusOr<const PassGraphs*> graphs = GraphsFor(evaluating_, *count, false);
  if (!graphs.ok()) return graphs.status();
  PS_RETURN_IF_ERROR(Bring(batch));
  PS_RETURN_IF_ERROR(JoinUploads());
  PS_RETURN_IF_ERROR((*graphs)->whole().Launch(context_->compute()));
  PS_RETURN_IF_ERROR(AwaitFlag(0));
  return ResultOf(*count);
}

absl::Status CudaPlan::AwaitFlag(size_t flag) const {
  const std::atomic_ref<uint32_t> raised(memory_.flags.data()[flag]);
  const auto is_raised = [&] { return raised.load(std::memory_order_acquire) == pass_; };
  const absl::Time begin = absl::Now();
  absl::Time queried = begin;
  // Awake, as CUDA's own waits are, but with the processor for whoever else wants it: there are
  // tens of microseconds between the flags of a small net.
  while (!is_raised()) {
    std::this_thread::yield();
    const absl::Time now = absl::Now();
    if (now - queried < kQueryInterval) continue;
    queried = now;
    const absl::StatusOr<bool> is_done = DeviceContext::IsDone(context_->compute());
    if (!is_done.ok()) return is_done.status();
    if (*is_done && !is_raised()) {
      return absl::InternalError("the GPU finished a pass without saying so");
    }
    if (now - begin > DeviceContext::kWaitMax) {
      return absl::AbortedError("the GPU has not finished a pass for " +
                                absl::FormatDuration(DeviceContext::kWaitMax));
    }
  }
  return absl::OkStatus();
}

StepResult CudaPlan::ResultOf(uint32_t count) const {
  const PassOutputs& totals = memory_.totals.data()[0];
  StepResult result;
  double values = count;
  if (net_.loss == ModelSpec::Loss::kCrossEntropy) {
    result.correct = totals.correct;
  } else {
    values *= net_.outputs;
  }
  result.loss = static_cast<float>(totals.loss_sum / values);
  return result;
}

}  // namespace slipstream::cuda
