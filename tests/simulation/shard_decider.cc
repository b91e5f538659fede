#include "tests/simulation/shard_decider.h"

#include "tests/simulation/closes_by_count.h"

namespace slipstream {
namespace {

/// Takes every push for the next one expected, so that a repeated one counts again.
class BlindToDuplicates final : public DeciderOf<ShardCore> {
 public:
  using DeciderOf::DeciderOf;

  std::optional<PushReply> OnPushHeader(const PushHeader& header) override {
    return core_.OnPushHeader(Renumbered(header));
  }
  PushDecision OnPush(const ShardCore::PushFacts& push) override {
    ShardCore::PushFacts renumbered = push;
    renumbered.header = Renumbered(push.header);
    return core_.OnPush(renumbered);
  }

 private:
  PushHeader Renumbered(PushHeader header) const {
    if (core_.view().Find(header.identity.worker) != nullptr) {
      header.sequence = core_.members().At(header.identity.worker).expected();
    }
    return header;
  }
};

/// Forgets what the gradient was computed from.
class FixesBaseLate final : public DeciderOf<ShardCore> {
 public:
  using DeciderOf::DeciderOf;

  PushDecision OnPush(const ShardCore::PushFacts& push) override {
    ShardCore::PushFacts late = push;
    late.header.base = core_.decided();
    return core_.OnPush(late);
  }
};

/// Says that a version is there when it is ordered.
class AnswersEarly final : public DeciderOf<ShardCore> {
 public:
  using DeciderOf::DeciderOf;

  PushDecision OnPush(const ShardCore::PushFacts& push) override {
    PushDecision decision = core_.OnPush(push);
    if (!decision.answer.has_value()) return decision;
    const Park* park = std::get_if<Park>(&*decision.answer);
    if (park == nullptr || !decision.effects.update.has_value()) return decision;
    core_.OnCancelled(park->ticket);
    decision.answer = Serve{core_.published(), std::nullopt};
    return decision;
  }
};

class ForgetsCancellation final : public DeciderOf<ShardCore> {
 public:
  using DeciderOf::DeciderOf;

  void OnCancelled(Ticket) override {}
};

}  // namespace

std::unique_ptr<ShardDecider> MakeShardDecider(const ShardCore::Options& options, PlantedBug bug) {
  switch (bug) {
    case PlantedBug::kNone:
      break;
    case PlantedBug::kDuplicateCheckOff:
      return std::make_unique<BlindToDuplicates>(options);
    case PlantedBug::kRoundsClosedByCount:
      return MakeCoreThatClosesByCount(options);
    case PlantedBug::kBaseFixedLate:
      return std::make_unique<FixesBaseLate>(options);
    case PlantedBug::kAnswersEarly:
      return std::make_unique<AnswersEarly>(options);
    case PlantedBug::kForgetsCancellation:
      return std::make_unique<ForgetsCancellation>(options);
  }
  return std::make_unique<DeciderOf<ShardCore>>(options);
}

}  // namespace slipstream
