#include "worker/compute/cuda/cuda_plan.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "worker/compute/cuda/batch_part.h"
#include "worker/compute/cuda/cuda_status.h"

namespace slipstream::cuda {
namespace {

/// A device that fails does not raise flags; it is asked this often.
constexpr absl::Duration kQueryInterval = absl::Milliseconds(1);

}  // namespace

absl::StatusOr<std::unique_ptr<Plan>> CudaPlan::New(const PlanDevices& devices,
                                                    const NetLayers& layers, const NetSizes& net,
                                                    const PlanOptions& options) {
  std::unique_ptr<CudaPlan> plan(new CudaPlan(net, MapOf(layers), options));
  PS_RETURN_IF_ERROR(plan->Prepare(devices, layers));
  return plan;
}

absl::Status CudaPlan::Prepare(const PlanDevices& devices, const NetLayers& layers) {
  PlanOptions of_part = options_;
  of_part.batch_size_max = BatchPart::Largest(options_.batch_size_max, devices.indices.size());
  for (const int device : devices.indices) {
    absl::StatusOr<PlanMember> member = PlanMember::New(device, layers, map_, block_, of_part);
    if (!member.ok()) return member.status();
    members_.push_back(*std::move(member));
  }
  PS_RETURN_IF_ERROR(Keep(host_, HostMemory::Allocate(net_, block_, options_.trains)));
  if (devices.are_grouped) PS_RETURN_IF_ERROR(Keep(sum_, GradientSum::New(devices.indices)));
  if (options_.trains) {
    PS_RETURN_IF_ERROR(Keep(coming_, ComingBatches::Allocate(members_, net_, block_)));
  }
  // Now, so that what cannot be computed is known before a run begins.
  PS_RETURN_IF_ERROR(PassGraphs::RunOnce(Parts(), options_.batch_size_max, options_.trains));
  return GraphsFor(options_.trains ? training_ : evaluating_, options_.batch_size_max,
                   options_.trains)
      .status();
}

CudaPlan::~CudaPlan() {
  // Nothing may be under way when memory goes; whether that went well matters no longer. Of a sum
  // with a device that has failed, or was not given its part, nothing comes.
  if (sum_ != nullptr && (!IsDone(first()).ok() || !AwaitCompute().ok())) sum_->Fail();
  for (const PlanMember& member : members_) {
    const DeviceContext& context = *member.context;
    (void)context.Enter();
    for (cudaStream_t stream : {context.compute(), context.upload(), context.download()}) {
      (void)cudaStreamSynchronize(stream);
    }
  }
}

void CudaPlan::WeightsArrived(ParameterRange range) {
  KeepUploadFailure(Upload(range));
  gate_.Arrived(range);
}

absl::Status CudaPlan::Upload(ParameterRange range) {
  absl::Status status;
  for (const PlanMember& member : members_) {
    PS_RETURN_IF_ERROR(member.context->Enter());
    map_.ForEachPart(range, [&](size_t host, size_t device, size_t size) {
      status.Update(PS_CUDA_STATUS(
          cudaMemcpyAsync(member.memory.weights.data() + device, host_.weights.data() + host,
                          size * sizeof(float), cudaMemcpyHostToDevice, member.context->upload())));
    });
  }
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
  for (const PlanMember& member : members_) {
    const DeviceContext& context = *member.context;
    PS_RETURN_IF_ERROR(context.Enter());
    PS_RETURN_IF_ERROR(context.Order(context.upload(), context.compute()));
  }
  return absl::OkStatus();
}

absl::Status CudaPlan::AwaitUploads() const {
  for (const PlanMember& member : members_) {
    PS_RETURN_IF_ERROR(member.context->Enter());
    PS_RETURN_IF_ERROR(DeviceContext::Await(member.context->upload()));
  }
  return absl::OkStatus();
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
  absl::StatusOr<std::unique_ptr<PassGraphs>> graphs =
      PassGraphs::Capture(Parts(), count, training);
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
  std::memcpy(host_.batch.data(), &inputs, sizeof(inputs));
  const bool is_there = coming_ != nullptr && coming_->Has(batch);
  if (!is_there) Stage(batch);
  const auto count = static_cast<uint32_t>(batch.examples.size() / net_.inputs);
  for (size_t i = 0; i < members_.size(); ++i) {
    const PlanMember& member = members_[i];
    const cudaStream_t compute = member.context->compute();
    std::byte* const to = member.memory.batch.data();
    PS_RETURN_IF_ERROR(member.context->Enter());
    PS_RETURN_IF_CUDA_ERROR(
        cudaMemcpyAsync(to, host_.batch.data(), sizeof(inputs), cudaMemcpyHostToDevice, compute));
    PS_RETURN_IF_ERROR(is_there
                           ? coming_->Bring(batch, i)
                           : block_.Copy(BatchPart::Of(count, i, members_.size()),
                                         host_.batch.data(), to, cudaMemcpyHostToDevice, compute));
  }
  return absl::OkStatus();
}

void CudaPlan::Stage(const Batch& batch) {
  const auto count = static_cast<uint32_t>(batch.examples.size() / net_.inputs);
  const BatchSpace space = block_.SpaceAt(host_.batch.data(), count, net_);
  std::ranges::copy(batch.examples, space.examples.begin());
  std::ranges::copy(batch.labels.first(space.labels.size()), space.labels.begin());
  std::ranges::copy(batch.targets.first(space.targets.size()), space.targets.begin());
}

absl::Status CudaPlan::StartStep(const Batch& batch, GradientListener* listener) {
  if (!options_.trains) return absl::FailedPreconditionError("the plan only evaluates");
  if (started_.has_value()) return absl::FailedPreconditionError("a step is under way");
  const absl::StatusOr<uint32_t> count = CheckBatch(net_, options_.batch_size_max, batch);
  if (!count.ok()) return count.status();
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
  const absl::Status ended = AwaitCompute();
  const bool may_have_mixed = !gate_.Leave();
  PS_RETURN_IF_ERROR(ended);
  return may_have_mixed ? absl::CancelledError("the weights were replaced") : launched;
}

absl::Status CudaPlan::Launch(const PassGraphs& graphs) {
  const ParameterRange all = {0, net_.parameters};
  if (gate_.Has(all)) {
    PS_RETURN_IF_ERROR(JoinUploads());
    return graphs.whole().Launch();
  }
  const absl::Status cancelled = absl::CancelledError("the weights did not come");
  for (const PassGraphs::Segment& segment : graphs.forward()) {
    if (!gate_.Await(segment.reads)) return cancelled;
    PS_RETURN_IF_ERROR(JoinUploads());
    PS_RETURN_IF_ERROR(segment.graph.Launch());
  }
  // Also what no layer read, if there is such: the gradient may be written only then.
  if (!gate_.Await(all)) return cancelled;
  PS_RETURN_IF_ERROR(JoinUploads());
  return graphs.rest().Launch();
}

absl::Status CudaPlan::AwaitCompute() const {
  for (const PlanMember& member : members_) {
    PS_RETURN_IF_ERROR(member.context->Enter());
    PS_RETURN_IF_ERROR(DeviceContext::Await(member.context->compute()));
  }
  return absl::OkStatus();
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
  PS_RETURN_IF_ERROR(AwaitLosses());
  StepResult result = ResultOf(started.count);
  result.forward_end = absl::Now();
  const std::vector<ParameterRange>& ranges = started.graphs->ranges();
  for (size_t i = 0; i < ranges.size(); ++i) {
    PS_RETURN_IF_ERROR(AwaitFlag(first(), i + 1));
    if (started.listener != nullptr) started.listener->OnGradientReady(ranges[i]);
  }
  return result;
}

absl::StatusOr<StepResult> CudaPlan::Evaluate(const Batch& batch) {
  if (started_.has_value()) return absl::FailedPreconditionError("a step is under way");
  const absl::StatusOr<uint32_t> count = CheckBatch(net_, options_.batch_size_max, batch);
  if (!count.ok()) return count.status();
  const absl::StatusOr<const PassGraphs*> graphs = GraphsFor(evaluating_, *count, false);
  if (!graphs.ok()) return graphs.status();
  PS_RETURN_IF_ERROR(Bring(batch));
  PS_RETURN_IF_ERROR(JoinUploads());
  PS_RETURN_IF_ERROR((*graphs)->whole().Launch());
  PS_RETURN_IF_ERROR(AwaitLosses());
  return ResultOf(*count);
}

absl::Status CudaPlan::AwaitLosses() const {
  for (const PlanMember& member : members_) PS_RETURN_IF_ERROR(AwaitFlag(member, 0));
  return absl::OkStatus();
}

absl::StatusOr<bool> CudaPlan::IsDone(const PlanMember& member) const {
  bool is_done = false;
  for (const PlanMember& one : members_) {
    const absl::StatusOr<bool> is_one_done = DeviceContext::IsDone(one.context->compute());
    if (!is_one_done.ok()) return is_one_done.status();
    if (&one == &member) is_done = *is_one_done;
  }
  if (sum_ != nullptr) PS_RETURN_IF_ERROR(sum_->Check());
  return is_done;
}

absl::Status CudaPlan::AwaitFlag(const PlanMember& member, size_t flag) const {
  const std::atomic_ref<uint32_t> raised(member.memory.flags.data()[flag]);
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
    const absl::StatusOr<bool> is_done = IsDone(member);
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
  PassOutputs totals;
  for (const PlanMember& member : members_) {
    totals.loss_sum += member.memory.totals.data()[0].loss_sum;
    totals.correct += member.memory.totals.data()[0].correct;
  }
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
