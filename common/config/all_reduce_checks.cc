#include "common/config/all_reduce_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "common/base/encoding.h"
#include "common/config/server_address.h"
#include "common/run/policy_rows.h"

namespace slipstream {
namespace {

/// Checks that the workers' connections, which Gloo does not encrypt, may leave the machine.
void CheckConnections(const RunDraft& draft, DiagnosticList& diagnostics) {
  const SecuritySpec& security = draft.spec.security;
  for (const char* path : {"cluster.servers", "security.plaintext", "security.mtls.ca"}) {
    if (!draft.IsUsable(path)) return;
  }
  // Without encryption, run_checks.cc refuses such servers anyway.
  if (!security.is_encrypted() || security.accept_plaintext_risk) return;
  const bool stays = std::ranges::all_of(draft.spec.cluster.servers, [](const std::string& text) {
    const std::optional<ServerAddress> address = ParseServerAddress(text);
    return !address.has_value() || address->IsLoopback();
  });
  if (stays) return;
  diagnostics.Report(
      draft.KeySource("consistency.policy"),
      "allreduce connects workers with each other, and these connections are not encrypted, "
      "whatever security.mtls says; set security.plaintext: accept_the_risk if the network is "
      "trusted, or use hardsync");
}

}  // namespace

void CheckAllReduce(const RunDraft& draft, DiagnosticList& diagnostics) {
  const RunSpec& run = draft.spec;
  if (!draft.IsUsable("consistency.policy") || !run.workers_make_weights()) return;
  struct Need {
    const char* path;
    bool is_met;
    std::string why;
  };
  const Need needs[] = {
      {"worker.algorithm", RowOf(run.worker.algorithm).pushes_gradients_of_pulled(),
       "worker.algorithm gradient: what the workers add up are gradients of the same weights"},
      {"worker.lanes", !run.worker.has_free_lanes(),
       "worker.lanes step: every gradient needs the weights that the last one made"},
      {"training.pipeline_depth",
       run.training.pipeline_depth == 1 || run.worker.has_free_lanes(),  // Lanes bring the depth.
       "training.pipeline_depth 1: the next gradient needs the weights that this one makes"},
      {"model.from", run.model_from == SuppliedBy::kSettings,
       "model.from settings: programs with the Python package push to servers"},
      {"data.from", run.data.from == SuppliedBy::kSettings,
       "data.from settings: programs with the Python package push to servers"},
      {"optimizer.staleness_scaling", run.optimizer.staleness_scaling == kDefaultScaling,
       "staleness_scaling none: no gradient is ever stale"},
      {"consistency.max_staleness.action",
       run.consistency.max_staleness.action == StalenessGuardSpec::Action::kNone,
       "no max_staleness: no gradient is ever stale"},
      {"consistency.before", run.policies_before.empty(),
       "to be the run's only policy: under the others the servers make the weights"},
      {"wire.push_codec", run.wire.push_codec == Encoding::kFp32,
       "wire.push_codec fp32: workers add up gradients as they are"},
      {"wire.pull_codec", run.wire.pull_codec == Encoding::kFp32,
       "wire.pull_codec fp32: weights are pulled once, at the start"},
      {"cluster.workers", run.cluster.workers <= kAllReduceWorkersMax,
       fmt::format("at most {} workers: each is connected with all others", kAllReduceWorkersMax)},
  };
  for (const Need& need : needs) {
    if (need.is_met || !draft.IsUsable(need.path)) continue;
    diagnostics.Report(draft.KeySource(need.path),
                       fmt::format("consistency.policy allreduce needs {}", need.why));
  }
  CheckConnections(draft, diagnostics);
}

}  // namespace slipstream
