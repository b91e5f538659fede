// The decisions of the consistency policies, and their registry.

#include <algorithm>

#include "common/policy/policy.h"
#include "common/policy/staleness_guard.h"

namespace slipstream {
namespace {

/// Each member owes each round one gradient of the version that the round starts from.
class Hardsync : public Policy {
 public:
  Admission Admit(const ShardFacts& shard, const GradientFacts& gradient) const override {
    if (gradient.member.heard) {
      return {Admission::Kind::kLate, "the open round has this worker's gradient already"};
    }
    if (gradient.base < shard.decided)
      return {Admission::Kind::kLate, "its round closed without it"};
    return {};
  }

  /// A round that no member has answered stays open; a round may close on excuses alone.
  Lack Lacks(const ShardFacts& shard) const override {
    if (shard.awaited > 0) return {.each_awaited = true};
    return {.gradients = shard.contributions + shard.excused == 0 ? 1u : 0u};
  }

  /// A gradient counts only if its base is the version that the round starts from. So a worker that
  /// has brought its gradient has nothing to do before the next round.
  PullCondition PullWaitsFor(const ShardFacts& shard, const PullFacts& pull) const override {
    const bool has_brought_its_own = pull.after_push && pull.member.heard;
    return {.version = has_brought_its_own ? Next(shard.decided) : shard.decided};
  }
};

/// A round closes with the first gradients of all members but `backups`: synchronous SGD with
/// backup workers (Chen et al., arXiv 1604.00981). Later gradients are dropped.
class Backup final : public Hardsync {
 public:
  explicit Backup(const ConsistencySpec& spec)
      : backups_(static_cast<uint32_t>(spec.parameters["backups"])) {}

  Lack Lacks(const ShardFacts& shard) const override {
    const uint32_t unheard = shard.awaited;
    if (unheard == 0) return Hardsync::Lacks(shard);
    // A round does not close on excuses alone while a member is still at work for it.
    const uint32_t least = shard.contributions == 0 ? 1 : 0;
    return {.gradients = std::max(least, unheard - std::min(unheard, backups_))};
  }

 private:
  const uint32_t backups_;
};

/// A round closes with a number of gradients, from any members: softsync, async and hogwild, and
/// the publications of allreduce.
class Counted : public Policy {
 public:
  explicit Counted(const ConsistencySpec& spec) : spec_(spec) {}

  Admission Admit(const ShardFacts&, const GradientFacts&) const override { return {}; }

  Lack Lacks(const ShardFacts& shard) const override {
    const bool takes_what_there_is = shard.is_draining || shard.was_held_back;
    const uint32_t size = takes_what_there_is ? 1 : spec_.round_size(shard.member_count);
    return {.gradients = size - std::min(size, shard.contributions)};
  }

  PullCondition PullWaitsFor(const ShardFacts&, const PullFacts&) const override { return {}; }

 private:
  const ConsistencySpec spec_;
};

/// Every gradient is an update, and a worker waits while it is more than `slack` pushes ahead of
/// the slowest one at work: stale synchronous parallel (Ho et al., NIPS 2013).
class Ssp final : public Counted {
 public:
  explicit Ssp(const ConsistencySpec& spec)
      : Counted(spec), slack_(static_cast<uint64_t>(spec.parameters["slack"])) {}

  PullCondition PullWaitsFor(const ShardFacts&, const PullFacts& pull) const override {
    const uint64_t own = Value(pull.member.clock);
    return {.slowest = WorkerClock{own - std::min(own, slack_)}};
  }

 private:
  const uint64_t slack_;
};

/// The staleness guard, around a policy whose gradients may be stale.
class Guarded final : public Policy {
 public:
  Guarded(std::unique_ptr<const Policy> guarded, const StalenessGuardSpec& spec)
      : guarded_(std::move(guarded)), guard_(spec) {}

  Admission Admit(const ShardFacts& shard, const GradientFacts& gradient) const override {
    const Admission own = guarded_->Admit(shard, gradient);
    if (own.kind != Admission::Kind::kJoin) return own;
    switch (guard_.Judge(Value(shard.decided) - Value(gradient.base))) {
      case StalenessGuard::Verdict::kTake:
        break;
      case StalenessGuard::Verdict::kRefuse:
        return {Admission::Kind::kTooStale, ""};
      case StalenessGuard::Verdict::kDrop:
        return {Admission::Kind::kDrop, ""};
    }
    return own;
  }

  Lack Lacks(const ShardFacts& shard) const override {
    Lack lack = guarded_->Lacks(shard);
    if (!lack.none() || shard.is_draining || !shard.oldest_base.has_value()) return lack;
    const uint64_t decided = Value(shard.decided);
    if (guard_.HoldsBack(Value(*shard.oldest_base), decided)) {
      lack.bases_before = Version{decided + 1 - guard_.spec().bound};
    }
    return lack;
  }

  PullCondition PullWaitsFor(const ShardFacts& shard, const PullFacts& pull) const override {
    PullCondition condition = guarded_->PullWaitsFor(shard, pull);
    condition.version = std::max(condition.version, WaitsForVersion(shard, pull));
    return condition;
  }

 private:
  Version WaitsForVersion(const ShardFacts& shard, const PullFacts& pull) const {
    // A worker with a gradient in a round that is held back waits for the round to close. A worker
    // with another gradient on the way does not wait: the round may wait for that one.
    const bool may_wait = shard.is_first && pull.member.heard && !pull.has_beside;
    if (guard_.blocks() && may_wait && Lacks(shard).is_held_back()) {
      return Next(shard.decided);
    }
    if (pull.after_push) return {};
    // Wait for a version that would not be refused at once; newer ones may not be published yet.
    const uint64_t bound = guard_.spec().bound;
    const bool is_bounded = guard_.Judge(bound + 1) != StalenessGuard::Verdict::kTake;
    const bool is_beyond = is_bounded && Value(shard.decided) > bound;
    return Version{is_beyond ? Value(shard.decided) - bound : 0};
  }

  const std::unique_ptr<const Policy> guarded_;
  const StalenessGuard guard_;
};

std::unique_ptr<const Policy> MakeUnguarded(const ConsistencySpec& spec) {
  switch (spec.policy) {
    case ConsistencySpec::Policy::kHardsync:
      return std::make_unique<Hardsync>();
    case ConsistencySpec::Policy::kBackup:
      return std::make_unique<Backup>(spec);
    case ConsistencySpec::Policy::kSsp:
      return std::make_unique<Ssp>(spec);
    case ConsistencySpec::Policy::kSoftsync:
    case ConsistencySpec::Policy::kAsync:
    case ConsistencySpec::Policy::kHogwild:
    case ConsistencySpec::Policy::kAllReduce:
      break;
  }
  return std::make_unique<Counted>(spec);
}

}  // namespace

std::unique_ptr<const Policy> MakePolicy(const ConsistencySpec& spec) {
  std::unique_ptr<const Policy> policy = MakeUnguarded(spec);
  // A policy that takes one gradient from each member has no stale gradients: those are late.
  const bool has_guard = spec.max_staleness.action != StalenessGuardSpec::Action::kNone;
  if (!has_guard || RowOf(spec.policy).traits.one_per_member) return policy;
  return std::make_unique<Guarded>(std::move(policy), spec.max_staleness);
}

}  // namespace slipstream
