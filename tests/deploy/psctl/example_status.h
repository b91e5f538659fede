#ifndef SLIPSTREAM_TESTS_DEPLOY_PSCTL_EXAMPLE_STATUS_H_
#define SLIPSTREAM_TESTS_DEPLOY_PSCTL_EXAMPLE_STATUS_H_

#include "proto/status.pb.h"

namespace slipstream {

/// Returns the status of a softsync run in progress, with two shards and two workers.
inline v1::RunStatus ExampleStatus() {
  v1::RunStatus status;
  status.set_name("demo");
  status.set_phase(v1::TRAINING);
  status.set_policy("softsync");
  v1::PolicyParameter& n = *status.add_policy_parameters();
  n.set_key("n");
  n.set_value(2);
  status.set_round_size(1);
  status.set_seconds(30);
  status.set_updates(100);
  status.set_pushes(100);
  status.set_examples(3200);
  status.set_examples_per_second(1234.4);
  status.set_batches_total(400);
  status.set_batches_done(100);
  status.set_epochs(1);
  status.set_epochs_total(4);
  status.set_train_loss(0.5);
  status.set_train_accuracy(0.875);
  status.set_parameters(61706);
  v1::StalenessStatus& staleness = *status.mutable_staleness();
  staleness.set_count(200);
  staleness.set_mean(1.25);
  staleness.set_window_mean(1.5);
  staleness.set_p50(1);
  staleness.set_p99(3);
  staleness.set_max(3);
  for (const uint64_t count : {40, 90, 50, 20}) staleness.add_histogram(count);
  for (uint32_t shard = 0; shard < 2; ++shard) {
    v1::ShardStatus& added = *status.add_shards();
    added.set_shard(shard);
    added.set_address("127.0.0.1:7070");
    added.set_begin(uint64_t{shard} * 30000);
    added.set_end(shard == 0 ? 30000 : 61706);
    added.set_version(100 - shard);
    added.set_round_size(1);
    added.set_silent_seconds(0.2);
  }
  for (uint32_t worker = 0; worker < 2; ++worker) {
    v1::WorkerStatus& added = *status.add_workers();
    added.set_worker(worker);
    added.set_state("live");
    added.set_host("node");
    added.set_pushes(50);
    added.set_examples(1600);
  }
  return status;
}

inline v1::EvaluationStatus ExampleEvaluation(uint32_t epoch, double accuracy, bool is_final) {
  v1::EvaluationStatus evaluation;
  evaluation.set_number(epoch);
  evaluation.set_epoch(epoch);
  evaluation.set_epochs_measured(epoch + 0.024);
  evaluation.set_test_accuracy(accuracy);
  evaluation.set_test_loss(0.25);
  evaluation.set_examples(4000);
  evaluation.set_seconds(0.5);
  for (int shard = 0; shard < 2; ++shard) evaluation.add_versions(1406);
  evaluation.set_final(is_final);
  return evaluation;
}

inline v1::RunEvent ExampleEvent(uint64_t number, const char* kind, const char* text) {
  v1::RunEvent event;
  event.set_number(number);
  event.set_time_ms(1'700'000'000'250);
  event.set_kind(kind);
  event.set_text(text);
  return event;
}

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_DEPLOY_PSCTL_EXAMPLE_STATUS_H_
