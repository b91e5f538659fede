#include "worker/training/work_source.h"

#include <optional>
#include <utility>
#include <variant>

#include "absl/time/clock.h"
#include "common/log/log.h"

namespace slipstream {

WorkSource::WorkSource(uint32_t slots, GradientClient& client, UnitFetcher& units,
                       StepFigures& figures)
    : client_(client), units_(units), figures_(figures), turns_(slots) {}

absl::StatusOr<bool> WorkSource::HeedFinished(uint32_t slot) {
  const WorkTurns::Rest rest = turns_.OnFinished(slot);
  if (rest != WorkTurns::Rest::kAwaitNews) return rest == WorkTurns::Rest::kOver;
  if (absl::Status status = AwaitUnit(); !status.ok()) return status;
  return false;
}

absl::Status WorkSource::AwaitUnit() {
  // The pushes in flight may be the last work there is. So first finish them: the coordinator has
  // to learn that they are done, and the shards which weights will not be used.
  for (uint32_t slot = 0; slot < turns_.slots(); ++slot) {
    const absl::StatusOr<GradientClient::Step> step = client_.Advance(slot);
    if (!step.ok()) return step.status();
  }
  TellFigures();
  units_.Ask(client_.wish());
  return Heed(units_.Await([this] { client_.Rest(); }));
}

absl::Status WorkSource::Prefetch() {
  TellFigures();  // The coordinator gives no more to a worker that seems to hold enough.
  if (const WorkWish wish = client_.wish(); wish.batches > 0) units_.Ask(wish);
  const std::optional<UnitFetcher::Result> news = units_.Take();
  return news ? Heed(*news) : absl::OkStatus();
}

absl::Status WorkSource::Heed(const UnitFetcher::Result& news) {
  if (!news.ok()) return news.status();
  if (const auto* next = std::get_if<NextStage>(&*news)) {
    LogInfo("the run is in another stage",
            {{"policy", next->policy}, {"stage", next->stage.number}});
  }
  turns_.OnNews(*news);
  absl::Status status = client_.OnNews(*news);
  figures_.OnProgress(client_.done().units);
  return status;
}

absl::Status WorkSource::Drain() {
  absl::Status status = client_.Drain();
  TellFigures();
  figures_.OnDone(client_.done().units, absl::Now());
  return status;
}

void WorkSource::TellFigures() {
  for (GradientClient::Transfer& transfer : client_.TakeTransfers()) {
    figures_.OnTransfer(std::move(transfer));
  }
  const GradientClient::Done done = client_.done();
  figures_.OnProgress(done.units);
  figures_.OnSplitPushes(done.split_pushes);
}

}  // namespace slipstream
