#ifndef SLIPSTREAM_TESTS_SERVER_CORE_SHARD_PUBLISHED_SHARD_H_
#define SLIPSTREAM_TESTS_SERVER_CORE_SHARD_PUBLISHED_SHARD_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "tests/support/shard_machine_driver.h"

namespace slipstream {

/// Returns options of a shard that a program publishes its weights to.
inline ShardMachine::Options Publishing(uint32_t versions_kept) {
  ShardMachine::Options options = TestOptions({ConsistencySpec::Policy::kAsync});
  options.optimizer.kind = OptimizerSpec::Kind::kAssign;
  options.pushes = PushKind::kValues;
  options.versions_kept = versions_kept;
  return options;
}

/// A shard in training with one worker, without the values. It has the machine check its
/// invariants after each event.
class PublishedShard {
 public:
  explicit PublishedShard(const ShardMachine::Options& options)
      : pushes_(options.pushes), core_(options) {
    core_.SetPlan(TestPlan());
    core_.OnView(FoundingView(1));
    core_.OnPhase(Phase::kTraining, Version{});
    core_.OnInitialized(1);
  }

  ShardMachine& core() { return core_; }
  Incarnation publisher() const { return publisher_.incarnation; }

  /// Has another incarnation take the worker's place.
  ShardOutput Restart(Incarnation incarnation) {
    publisher_.incarnation = incarnation;
    sequence_ = 1;
    const ViewNumber number{Value(core_.view().number) + 1};
    return Checked(core_.OnView({.number = number, .members = {publisher_}}));
  }

  ShardMachine::PushFacts NextPush(uint64_t clock, uint64_t label = 0) {
    ShardMachine::PushFacts push = PushOf(0, sequence_++, Value(core_.decided()));
    push.header.identity = IdentityOf(publisher_);
    push.header.kind = pushes_;
    push.header.clock = WorkerClock{clock};
    push.header.label = label;
    return push;
  }

  /// Makes a version that is not published yet.
  ShardOutput Push(ShardMachine::PushFacts push) {
    const PushAdmission admission = core_.OnPushHeader(push.header);
    EXPECT_FALSE(admission.refusal.has_value());
    push.push = admission.push;
    ShardOutput output = core_.OnPush(CallId{next_push_call_++}, push);
    core_.ReleaseBytes(output.folds.size() * push.header.count * sizeof(float));
    return Checked(std::move(output));
  }

  ShardOutput PublishNext() { return Checked(core_.OnPublished(Next(core_.published()))); }

  ShardOutput Publish(uint64_t clock, uint64_t label = 0) {
    Push(NextPush(clock, label));
    return PublishNext();
  }

  ShardOutput Pull(uint64_t call, const PullRequest& request) {
    return Checked(core_.OnPull(CallId{call}, request));
  }

  /// A reader pulls the newest version, or that with this stamp.
  ShardOutput Pull(uint64_t call, std::optional<Stamp> exact = std::nullopt) {
    return Pull(call, {.shard_map = TestPlan().shard_map, .exact = exact});
  }

  ShardOutput Done(uint64_t call) { return Checked(core_.OnPullDone(CallId{call}, std::nullopt)); }

 private:
  ShardOutput Checked(ShardOutput output) {
    core_.CheckInvariants();
    return output;
  }

  const PushKind pushes_;
  ShardMachine core_;
  Member publisher_ = FoundingView(1).members[0];
  uint64_t sequence_ = 1;
  uint64_t next_push_call_ = 1'000'000;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SERVER_CORE_SHARD_PUBLISHED_SHARD_H_
