#include "server/status/coordinator_facts.h"

#include <optional>

namespace slipstream {

StatusFacts FactsOf(const Coordinator& coordinator, absl::Time now) {
  StatusFacts facts;
  facts.run = coordinator.orders().run;
  facts.phase = coordinator.phase();
  facts.stages = coordinator.stages();
  facts.stage = coordinator.stage();
  facts.failure = coordinator.failure();
  if (const std::optional<EndReason> reason = coordinator.end_reason()) {
    facts.ended_by = Name(*reason);
  }
  facts.training_time = coordinator.TrainingTime(now);
  facts.batches_total = coordinator.batches_total();
  facts.batches_done = coordinator.batches_done();
  facts.epochs_done = coordinator.epochs_done();
  const std::optional<ModelOrders>& model = coordinator.orders().model;
  if (model.has_value()) facts.parameters = model->layout.parameters();
  facts.view = coordinator.membership().view().number;
  facts.live_workers = coordinator.membership().live();
  facts.missing = coordinator.Missing(now);
  for (const auto& [id, record] : coordinator.membership().workers()) {
    facts.workers[id] = {.record = record,
                         .lease_left = coordinator.membership().LeaseLeft(record, now),
                         .has_work = coordinator.HasWork(id)};
  }
  facts.now = now;
  facts.evaluations = coordinator.evaluations().results();
  facts.weights_sha256 = coordinator.evaluations().weights_sha256();
  facts.events = coordinator.events();
  return facts;
}

}  // namespace slipstream
