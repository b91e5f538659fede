#include "worker/training/local_exchange.h"

#include <span>
#include <utility>
#include <variant>

#include "worker/training/nonfinite_steps.h"

namespace slipstream {
namespace {

void Append(std::vector<ParameterRange>& to, const std::vector<ParameterRange>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

}  // namespace

absl::Status LocalExchange::AwaitAnswers(const BatchRanges& batches) {
  if (!servers_.goes_on() && !steps_.has_fragments()) return absl::OkStatus();
  if (absl::Status status = servers_.Drain(); !status.ok()) return status;
  // Weights that came meanwhile may have ended the round.
  absl::Status status = CheckWanted(servers_.Advance(0), batches);
  if (status.ok()) NoteAnswers();
  return status;
}

void LocalExchange::NoteAnswers() {
  Append(without_effect_, servers_.TakeRangesWithoutEffect());
  if (steps_.has_fragments()) Append(landed_, servers_.TakeLanded());
}

bool LocalExchange::has_to_settle() const {
  if (steps_.landing().empty()) return false;
  return !steps_.is_started() || !without_effect_.empty() || !landed_.empty();
}

void LocalExchange::Settle() {
  if (steps_.landing().empty()) return;
  UndoWithoutEffect();
  if (!steps_.is_started()) steps_.StartFromLanding();
  LandNoted();
}

void LocalExchange::UndoWithoutEffect() {
  NoteAnswers();
  for (const ParameterRange& range : std::exchange(without_effect_, {})) {
    if (steps_.is_started()) steps_.OnRefused(range);
  }
}

absl::Status LocalExchange::Land(const BatchRanges& batches) {
  absl::Status wanted = CheckWanted(servers_.FetchForPush(0), batches);
  if (wanted.ok()) steps_.OnLanding();
  return wanted;
}

std::vector<ShardId> LocalExchange::LeavingAfter(uint64_t taken, const BatchRanges& batches) const {
  // Without any step, there is nothing to push yet.
  if (is_spoilt() || steps_.steps() == 0) return {};
  return steps_.fragments().LeavingAfter(taken, CountOf(batches), servers_.ShardsToPush());
}

bool LocalExchange::is_due(const BatchRanges& batches, uint64_t taken) const {
  if (!steps_.has_fragments()) return false;
  if (!LeavingAfter(taken, batches).empty()) return true;
  const bool are_to_land =
      taken == CountOf(batches) || taken >= left_after_ + steps_.fragments().delay();
  return is_on_the_way_ && are_to_land;
}

absl::Status LocalExchange::ExchangeFragments(const GradientClient::Gradient& push, uint64_t taken,
                                              std::optional<float> loss,
                                              const std::function<absl::Status()>& prepare) {
  if (!is_due(push.batches, taken)) return absl::OkStatus();
  const std::vector<ShardId> leaving = LeavingAfter(taken, push.batches);
  absl::Status status;
  if (is_on_the_way_) status = LandFragments();
  if (!status.ok() || leaving.empty()) return status;
  nonfinite_ = Prepare(leaving, loss);
  if (is_spoilt()) return absl::OkStatus();
  if (status = prepare(); !status.ok()) return status;
  if (status = servers_.PushPart(push, leaving, {.loss = loss}); !status.ok()) return status;
  left_after_ = taken;
  is_on_the_way_ = true;
  return steps_.fragments().delay() == 0 ? LandFragments() : absl::OkStatus();
}

absl::Status LocalExchange::LandFragments() {
  if (absl::Status status = servers_.Drain(); !status.ok()) return status;
  NoteAnswers();
  LandNoted();
  return absl::OkStatus();
}

void LocalExchange::LandNoted() {
  is_on_the_way_ = false;
  for (const ParameterRange& range : std::exchange(landed_, {})) steps_.OnFragmentLanding(range);
}

std::optional<std::string> LocalExchange::PrepareRest(std::optional<float> loss) {
  if (is_spoilt()) return std::exchange(nonfinite_, std::nullopt);
  return Prepare(servers_.ShardsToPush(), loss);
}

void LocalExchange::Abandon() {
  left_after_ = 0;
  is_on_the_way_ = false;
  nonfinite_.reset();
}

std::optional<std::string> LocalExchange::Prepare(const std::vector<ShardId>& shards,
                                                  std::optional<float> loss) {
  std::optional<std::string> nonfinite;
  for (const ShardId shard : shards) {
    const ParameterRange range = servers_.map().range(shard);
    steps_.BeforePush(range);
    const std::span<const float> values = steps_.outbox().subspan(range.begin, range.size());
    if (!nonfinite) {
      nonfinite = NonfinitePart(loss, values, options_.push_codec, range.begin, "a gradient",
                                options_.layout);
    }
  }
  return nonfinite;
}

absl::Status LocalExchange::CheckWanted(const absl::StatusOr<GradientClient::Step>& step,
                                        const BatchRanges& batches) {
  if (!step.ok()) return step.status();
  const auto* compute = std::get_if<GradientClient::Compute>(&*step);
  const bool is_wanted = compute != nullptr && compute->batches == batches;
  return is_wanted ? absl::OkStatus()
                   : absl::CancelledError("the shards have gone on without this push");
}

}  // namespace slipstream
