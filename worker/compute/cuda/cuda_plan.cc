#include "worker/compute/cuda/cuda_plan.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "worker/compute/cuda/batch_part.h"
#include "worker/compute/cuda/cuda_status.h"

namespace slipstream::cuda {

absl::StatusOr<std::unique_ptr<Plan>> CudaPlan::New(const PlanDevices& devices,
                                                    const NetLayers& layers, const NetSizes& net,
                                                    const PlanOptions& options) {
  std::unique_ptr<CudaPlan> plan(new CudaPlan(devices, net, MapOf(layers), options));
  absl::Status prepared = plan->Prepare(layers);
  if (prepared.ok() && plan->group_ != nullptr) prepared = plan->ConnectDevices();
  if (prepared.ok()) return plan;
  // The destructor would wait, perhaps for ever, for a device that has failed; the process is about
  // to end anyway.
  if (absl::IsAborted(prepared)) (void)plan.release();
  return prepared;
}

CudaPlan::CudaPlan(const PlanDevices& devices, const NetSizes& net, ArenaMap map,
                   const PlanOptions& options)
    : devices_(devices),
      net_(net),
      options_(options),
      map_(std::move(map)),
      block_(BatchBlock::For(net, options.batch_size_max)),
      part_block_(
          BatchBlock::For(net, BatchPart::Largest(options.batch_size_max, devices.indices.size()))),
      gate_(net.parameters) {}

absl::Status CudaPlan::Prepare(const NetLayers& layers) {
  const auto lock = devices_.KeepApart();
  PlanOptions of_part = options_;
  of_part.batch_size_max = BatchPart::Largest(options_.batch_size_max, devices_.indices.size());
  for (const int device : devices_.indices) {
    absl::StatusOr<PlanMember> member = PlanMember::New(device, layers, map_, part_block_, of_part);
    if (!member.ok()) return member.status();
    members_.push_back(*std::move(member));
  }
  PS_RETURN_IF_ERROR(Keep(host_, HostMemory::Allocate(net_, options_)));
  PS_RETURN_IF_ERROR(
      Keep(batches_, BatchUpload::Allocate(members_, net_, block_, part_block_, options_.trains)));
  if (options_.trains && devices_.are_grouped) {
    PS_RETURN_IF_ERROR(Keep(
        group_, GroupGradients::New(members_, devices_.indices, map_, host_, *devices_.launching)));
  }
  // Capture now, so that a net that cannot be computed is reported before a run begins.
  return Capture(options_.batch_size_max, options_.trains);
}

absl::Status CudaPlan::ConnectDevices() {
  watch_.WatchSums(*group_);
  absl::Status status;
  // Capturing has computed a pass first; the values of its gradients do not matter.
  const std::vector<ParameterRange>& ranges = training_.Find(options_.batch_size_max)->ranges();
  for (size_t i = 0; i < ranges.size() && status.ok(); ++i) {
    status = group_->Collect(i, ranges[i]);
  }
  if (status.ok()) status = AwaitAll(members_, &DeviceContext::download);
  if (status.ok()) return group_->Check();
  group_->Fail();
  const absl::Status lost = AwaitAll(members_, &DeviceContext::upload);
  return lost.ok() ? GroupGradients::CannotConnect(status) : lost;
}

CudaPlan::~CudaPlan() {
  if (DeviceContext::HasHung()) {
    Abandon();
    return;
  }
  const auto lock = devices_.KeepApart();
  // No work may be under way when memory is freed; its errors no longer matter.
  group_.reset();
  for (const PlanMember& member : members_) {
    const DeviceContext& context = *member.context;
    (void)context.Enter();
    for (cudaStream_t stream : {context.compute(), context.upload(), context.download()}) {
      (void)cudaStreamSynchronize(stream);
    }
  }
  evaluating_ = {};
  training_ = {};
  batches_.reset();
  host_ = {};
  members_.clear();
}

void CudaPlan::Abandon() {
  (void)group_.release();
  (void)batches_.release();
  (void)new auto(std::move(evaluating_));
  (void)new auto(std::move(training_));
  (void)new auto(std::move(host_));
  (void)new auto(std::move(members_));
}

void CudaPlan::WeightsArrived(ParameterRange range) {
  upload_.Send(range);
  gate_.Arrived(range);
}

void CudaPlan::ExpectWeights() {
  gate_.Expect();
  // weights_host() must not be written until the last upload from it is done.
  upload_.Await();
}

void CudaPlan::RevokeWeights(ParameterRange range) {
  gate_.Revoke(range);
  upload_.Await();
}

absl::StatusOr<const PassGraphs*> CudaPlan::GraphsFor(uint32_t count, bool training) {
  if (const PassGraphs* found = GraphsOf(training).Find(count)) return found;
  const auto lock = devices_.KeepApart();
  PS_RETURN_IF_ERROR(Capture(count, training));
  return GraphsOf(training).Find(count);
}

absl::Status CudaPlan::Capture(uint32_t count, bool training) {
  absl::StatusOr<std::unique_ptr<PassGraphs>> graphs =
      PassGraphs::Capture(Parts(), count, training);
  if (!graphs.ok()) return graphs.status();
  GraphsOf(training).Add(count, *std::move(graphs));
  return absl::OkStatus();
}

bool CudaPlan::KeepExamples(const ExampleTable& table) {
  const auto lock = devices_.KeepApart();
  batches_->DropExamples();
  // If a table does not fit the net, each of its batches is refused with the reason.
  const bool is_of_use = options_.trains && CheckTable(net_, table).ok();
  return is_of_use && batches_->KeepExamples(table, *devices_.kept);
}

std::optional<BatchSpace> CudaPlan::NewBatch(uint32_t count) {
  if (count == 0 || count > options_.batch_size_max) return std::nullopt;
  return batches_->New(count);
}

absl::Status CudaPlan::StartStep(const Batch& batch, GradientListener* listener) {
  if (!options_.trains) return absl::FailedPreconditionError("the plan only evaluates");
  if (started_.has_value()) return absl::FailedPreconditionError("a step is under way");
  const absl::StatusOr<uint32_t> count =
      CheckBatch(net_, options_.batch_size_max, batch, batches_->kept());
  if (!count.ok()) return count.status();
  const absl::StatusOr<const PassGraphs*> graphs = GraphsFor(*count, true);
  EndSumsUnless(graphs.ok());
  if (!graphs.ok()) return graphs.status();
  gate_.Enter();
  absl::Status launched = batches_->Bring(batch, watch_.Begin());
  if (launched.ok()) launched = Launch(**graphs);
  if (launched.ok()) {
    started_ = {*graphs, listener, *count};
    return absl::OkStatus();
  }
  // Wait, because the next batch overwrites this one.
  const absl::Status ended = AwaitAll(members_, &DeviceContext::compute);
  const bool may_have_mixed = !gate_.Leave();
  EndSumsUnless(absl::IsCancelled(launched));
  if (!absl::IsCancelled(launched)) return launched;
  PS_RETURN_IF_ERROR(ended);
  return may_have_mixed ? absl::CancelledError("the weights were replaced") : launched;
}

absl::Status CudaPlan::Launch(const PassGraphs& graphs) {
  const ParameterRange all = {0, net_.parameters};
  if (gate_.Has(all)) {
    PS_RETURN_IF_ERROR(upload_.Join());
    return graphs.whole().Launch();
  }
  const absl::Status cancelled = absl::CancelledError("the weights did not come");
  for (const PassGraphs::Segment& segment : graphs.forward()) {
    if (!gate_.Await(segment.reads)) return cancelled;
    PS_RETURN_IF_ERROR(upload_.Join());
    PS_RETURN_IF_ERROR(segment.graph.Launch());
  }
  // Wait also for weights that no layer reads, if there are any: only then may the gradient be
  // written.
  if (!gate_.Await(all)) return cancelled;
  PS_RETURN_IF_ERROR(upload_.Join());
  return graphs.rest().Launch();
}

void CudaPlan::EndSumsUnless(bool goes_on) {
  if (!goes_on && group_ != nullptr) group_->Fail();
}

absl::StatusOr<StepResult> CudaPlan::FinishStep() {
  if (!started_.has_value()) return absl::FailedPreconditionError("no step was started");
  const Started started = *std::exchange(started_, std::nullopt);
  absl::StatusOr<StepResult> result = Await(started);
  EndSumsUnless(result.ok());
  if (result.ok()) result->waited = gate_.waited();
  const bool may_have_mixed = !gate_.Leave();
  if (result.ok() && may_have_mixed) return absl::CancelledError("the weights were replaced");
  return result;
}

absl::StatusOr<StepResult> CudaPlan::Await(const Started& started) {
  PS_RETURN_IF_ERROR(watch_.Await([&] { return watch_.AllRaised(0); }));
  StepResult result = ResultOf(started.count);
  result.forward_end = absl::Now();
  PS_RETURN_IF_ERROR(AwaitGradients(started));
  return result;
}

absl::Status CudaPlan::AwaitGradients(const Started& started) {
  const std::vector<ParameterRange>& ranges = started.graphs->ranges();
  size_t collected = 0;
  const auto can_collect = [&] {
    return group_ != nullptr && collected < ranges.size() && watch_.AllRaised(collected + 1);
  };
  for (size_t told = 0; told < ranges.size();) {
    const auto has_come = [&] {
      return group_ == nullptr ? watch_.AllRaised(told + 1) : group_->HasCome(told, watch_.pass());
    };
    PS_RETURN_IF_ERROR(watch_.Await([&] { return can_collect() || has_come(); }));
    if (can_collect()) {
      PS_RETURN_IF_ERROR(group_->Collect(collected, ranges[collected]));
      ++collected;
    }
    if (has_come()) {
      if (started.listener != nullptr) started.listener->OnGradientReady(ranges[told]);
      ++told;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<StepResult> CudaPlan::Evaluate(const Batch& batch) {
  if (started_.has_value()) return absl::FailedPreconditionError("a step is under way");
  const absl::StatusOr<uint32_t> count =
      CheckBatch(net_, options_.batch_size_max, batch, batches_->kept());
  if (!count.ok()) return count.status();
  const absl::StatusOr<const PassGraphs*> graphs = GraphsFor(*count, false);
  if (!graphs.ok()) return graphs.status();
  PS_RETURN_IF_ERROR(batches_->Bring(batch, watch_.Begin()));
  PS_RETURN_IF_ERROR(upload_.Join());
  PS_RETURN_IF_ERROR((*graphs)->whole().Launch());
  PS_RETURN_IF_ERROR(watch_.Await([&] { return watch_.AllRaised(0); }));
  return ResultOf(*count);
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
