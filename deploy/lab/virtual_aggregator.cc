#include "deploy/lab/virtual_aggregator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "server/aggregator/aggregator.h"
#include "server/aggregator/combined_values.h"

namespace slipstream {

VirtualAggregator::VirtualAggregator(const LabContext& lab, uint32_t group, ShardId shard,
                                     std::function<void(const absl::Status&)> on_failure)
    : lab_(lab),
      group_(group),
      shard_(shard),
      on_failure_(std::move(on_failure)),
      process_(lab.queue),
      pushes_({.run = lab.run,
               .shard = shard,
               .group = group,
               .composites_max = Aggregator::kUplinksMax}),
      pull_uplink_(MakeUplink()) {}

AggregatorReport VirtualAggregator::Report() {
  return {.group = group_,
          .shard = shard_,
          .instance = 1,
          .number = ++reports_,
          .address = fmt::format("aggregator-{}-{}:7070", group_, Value(shard_)),
          .orders_seen = orders_seen()};
}

void VirtualAggregator::OnOrders(const ServerOrders& orders) {
  pushes_.OnOrders(orders);
  Advance();
}

// Pushes of workers.

void VirtualAggregator::Push(CallId call, const PushHeader& header, ReceivedValues* values,
                             uint64_t /*bytes*/, OnAnswer on_answer) {
  const BegunPush begun = pushes_.BeginPush(header, /*lack=*/"");
  waiting_.emplace(call, std::move(on_answer));
  if (begun.refusal.has_value()) {
    Deliver({Answer{.call = call, .push = begun.refusal}});
    return Advance();  // The others need not wait for this worker.
  }
  PushAssembly push(header, begun.push);
  PS_CHECK(push.Add(0, std::move(*values)).ok());
  if (auto sent_back = pushes_.FinishPush(call, push, lab_.queue.now())) {
    Deliver({Answer{.call = call, .push = *std::move(sent_back)}});
  }
  Advance();
}

void VirtualAggregator::Cancel(CallId call) {
  waiting_.erase(call);
  if (pulls_.Cancel(call)) return;
  pushes_.Cancel(call, lab_.queue.now());
  pushes_.OnCallGone(call);
  Advance();
}

void VirtualAggregator::Advance() {
  const absl::Time now = lab_.queue.now();
  Answers held;
  do {
    // A push may have waited for an answer that nobody waits for any more.
    held = pushes_.TakeHeld(now);
    Deliver(held);
    while (std::optional<PushGroup::Outgoing> composite = pushes_.Take(now)) {
      SendUp(*std::move(composite));
    }
  } while (!held.empty());
  const absl::Time look = pushes_.NextLook();
  if (look >= next_look_) return;
  next_look_ = look;
  process_.At(look, [this] {
    next_look_ = absl::InfiniteFuture();
    Advance();
  });
}

void VirtualAggregator::SendUp(PushGroup::Outgoing composite) {
  if (!composite.may_leave) {
    return Deliver(pushes_.OnAnswer(composite.id, absl::ResourceExhaustedError("no uplink"),
                                    nullptr, lab_.queue.now()));
  }
  ReceivedValues::Buffer mean = ReceivedValues::MakeBuffer(composite.header.count);
  CombineValues(composite.gradients, composite.weighing, mean.to);
  const uint64_t bytes = mean.to.size_bytes();
  Uplink& uplink = FreeUplink();
  uplink.is_busy = true;
  uplink.calls.Push(
      shard_, [header = composite.header] { return header; },
      {std::make_shared<ReceivedValues>(std::move(mean.values)), bytes},
      [this, &uplink, id = composite.id](const PushHeader&, const Answer& answer,
                                         const LaneTimes&) {
        uplink.is_busy = false;
        Deliver(pushes_.OnAnswer(id, ExchangeAnswer{*answer.push, answer.header}, answer.weights,
                                 lab_.queue.now()));
        Advance();
      });
}

std::unique_ptr<VirtualAggregator::Uplink> VirtualAggregator::MakeUplink() {
  const VirtualRoute way = {
      .peer = [this](ShardId shard) -> VirtualPeer& { return *lab_.servers[Value(shard)]; },
      .to = [this](ShardId shard, uint64_t bytes,
                   absl::Time now) { return lab_.links.GroupToServer(group_, shard, bytes, now); },
      .from = [this](
                  ShardId shard, uint64_t bytes,
                  absl::Time now) { return lab_.links.ServerToGroup(shard, group_, bytes, now); }};
  return std::unique_ptr<Uplink>(
      new Uplink{.calls = VirtualCalls(lab_, process_, way, std::nullopt, on_failure_)});
}

VirtualAggregator::Uplink& VirtualAggregator::FreeUplink() {
  const auto found =
      std::ranges::find_if(uplinks_, [](const auto& uplink) { return !uplink->is_busy; });
  if (found != uplinks_.end()) return **found;
  uplinks_.push_back(MakeUplink());
  return *uplinks_.back();
}

// Pulls of workers.

void VirtualAggregator::Pull(CallId call, const PullRequest& request, OnAnswer on_answer) {
  waiting_.emplace(call, std::move(on_answer));
  if (std::optional<Answer> answer =
          pulls_.Pull({*request.identity, request.min_version, request.min_generation}, call)) {
    answer->call = call;
    return Deliver({*std::move(answer)});
  }
  Fetch();
}

void VirtualAggregator::FinishPull(CallId call, const PullRequest&) { pulls_.Finish(call); }

void VirtualAggregator::Fetch() {
  const std::optional<GroupPulls::Asked> asked = pulls_.Next();
  if (pull_uplink_->is_busy || !asked.has_value()) return;
  pull_uplink_->is_busy = true;
  const auto request = [this, asked = *asked] {
    return PullRequest{.identity = asked.identity,
                       .shard_map = pushes_.orders().model->shard_map.fingerprint(),
                       .min_version = asked.min_version,
                       .min_generation = asked.min_generation};
  };
  pull_uplink_->calls.Pull(
      shard_, request, [this, asked = *asked](const PullRequest&, const Answer& answer) {
        pull_uplink_->is_busy = false;
        Deliver(pulls_.OnFetched(asked, GroupPulls::Fetched{*answer.header, answer.weights}));
        Fetch();
      });
}

void VirtualAggregator::Deliver(Answers answers) {
  for (Answer& answer : answers) {
    auto caller = waiting_.extract(answer.call);
    if (caller.empty()) continue;
    caller.mapped()(std::move(answer));
  }
}

}  // namespace slipstream
