#include "deploy/lab/virtual_server.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "server/status/shard_report.h"

namespace slipstream {

VirtualServer::VirtualServer(Options options, EventQueue& queue)
    : options_(std::move(options)),
      queue_(queue),
      shard_({.shard = options_.shard,
              .run = options_.run,
              // A run must not depend on what else this machine does.
              .memory_available = [] { return std::numeric_limits<uint64_t>::max(); }}) {}

ServerReport VirtualServer::Report() {
  ServerReport report = {.shard = options_.shard,
                         .instance = 1,
                         .number = ++reports_,
                         .address = options_.run.cluster.servers[Value(options_.shard)],
                         .run = run_,
                         .orders_seen = orders_seen_,
                         .initialized = machine().has_granted_weights(),
                         .drained = machine().is_drained(),
                         .generation = machine().generation(),
                         .failure = shard_.failure(),
                         .members_max = shard_.members_max(),
                         .version = machine().published(),
                         .batches_of_rounds = machine().batches_of_rounds()};
  for (const Member& member : machine().view().members) {
    const MemberRecord::Newest newest = machine().NewestOf(member.worker, member.incarnation);
    report.pushed.push_back({member.worker, member.incarnation, newest.batch_end, newest.clock});
  }
  return report;
}

void VirtualServer::OnOrders(const ServerOrders& orders) {
  orders_seen_ = orders.number;
  run_ = orders.run;
  if (orders.model.has_value()) range_ = orders.model->shard_map.range(options_.shard);
  Absorb(shard_.OnOrders(orders));
}

absl::Status VirtualServer::Initialize(const InitializeHeader& header,
                                       std::span<const float> weights) {
  InitializeHeader whole = header;
  whole.count = weights.size();
  absl::StatusOr<std::shared_ptr<FloatBuffer>> buffer = shard_.BeginInitialize(whole);
  if (!buffer.ok()) return buffer.status();
  std::ranges::copy(weights, (*buffer)->values().begin());
  Weights filled = *std::move(buffer);
  const absl::Status taken = shard_.FinishInitialize(whole, filled);
  StartJobs();
  return taken;
}

void VirtualServer::Pull(CallId call, const PullRequest& request, OnAnswer on_answer) {
  waiting_.emplace(call, std::move(on_answer));
  Absorb(shard_.Pull(call, request));
}

void VirtualServer::FinishPull(CallId call, const PullRequest& request) {
  Absorb(shard_.FinishPull(call, ReaderOf(request)));
}

PushReply VirtualServer::Decide(CallId call, const PushHeader& header, ReceivedValues* values,
                                uint64_t bytes, OnAnswer on_answer) {
  BegunPush begun = shard_.BeginPush(header);
  if (begun.refusal.has_value()) {
    Answer refusal;
    refusal.call = call;
    refusal.push = begun.refusal;
    on_answer(std::move(refusal));
    return *begun.refusal;
  }
  PushAssembly push(header, begun.push, begun.draft);
  if (values != nullptr) {
    value_counts_.OnPushed(values->count(), bytes);
    PS_CHECK(push.Add(0, std::move(*values)).ok());
  }
  waiting_.emplace(call, std::move(on_answer));
  ShardResult result = shard_.FinishPush(call, push);
  PushReply decided = result.record->reply;
  Absorb(std::move(result));
  return decided;
}

void VirtualServer::Cancel(CallId call) {
  shard_.Cancel(call);
  waiting_.erase(call);
}

void VirtualServer::Absorb(ShardResult result) {
  if (result.record.has_value() && result.record->took_effect && options_.push_log.has_value()) {
    options_.push_log->Append(queue_.now(), result.record->header, result.record->reply,
                              machine().stage());
  }
  for (Answer& answer : result.answers) {
    auto caller = waiting_.extract(answer.call);
    if (caller.empty()) continue;
    if (answer.weights != nullptr) {
      const uint64_t values = answer.weights->values().size();
      value_counts_.OnPulled(values, values * sizeof(float));
    }
    answer.Settle();
    caller.mapped()(std::move(answer));
  }
  StartJobs();
}

void VirtualServer::StartJobs() {
  while (!job_runs_ && shard_.has_job()) {
    auto job = std::make_shared<ShardJob>(shard_.TakeJob());
    if (options_.update == absl::ZeroDuration() || !job->makes_weights()) {
      FinishJob(std::move(*job));
      continue;
    }
    job_runs_ = true;
    queue_.After(options_.update, [this, job] {
      job_runs_ = false;
      FinishJob(std::move(*job));
    });
  }
}

void VirtualServer::FinishJob(ShardJob job) {
  job.Run();
  Absorb(shard_.FinishJob(std::move(job)));
}

v1::ShardStatus VirtualServer::Describe() const {
  v1::ShardStatus status = DescribeShard(machine());
  status.set_shard(Value(options_.shard));
  if (range_.has_value()) {
    status.set_begin(range_->begin);
    status.set_end(range_->end);
  }
  value_counts_.Describe(status);
  const TrainingState* state = shard_.training_state();
  status.set_live_versions(state == nullptr ? 0 : static_cast<uint32_t>(state->live_versions()));
  if (options_.push_log.has_value()) status.set_push_log_pushes(options_.push_log->pushes());
  return status;
}

absl::Status VirtualServer::FlushPushLog() {
  return options_.push_log.has_value() ? options_.push_log->Flush() : absl::OkStatus();
}

}  // namespace slipstream
