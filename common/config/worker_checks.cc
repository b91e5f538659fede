#include "common/config/worker_checks.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "common/settings/algorithm_rows.h"
#include "common/settings/carried_state.h"
#include "common/settings/policy_rows.h"

namespace slipstream {
namespace {

using Draft = const RunDraft&;
using Diagnostics = DiagnosticList&;

/// Checks that a worker that goes on without fetching stays within the bound of staleness: its own
/// pushes make versions, too, and those beyond the bound would be lost each time.
void CheckFetchesWithinBound(Draft draft, Diagnostics diagnostics) {
  using Action = StalenessGuardSpec::Action;
  const RunSpec& run = draft.spec;
  const StalenessGuardSpec& guard = run.consistency.max_staleness;
  const bool loses = guard.action == Action::kReject || guard.action == Action::kDrop;
  if (!loses || !draft.IsUsable("consistency.max_staleness.bound")) return;
  const uint64_t own =
      (run.worker.pushes_per_fetch() - 1) / run.consistency.round_size(run.cluster.workers);
  if (own <= guard.bound) return;
  diagnostics.Report(draft.KeySource("worker.fetch_every"),
                     fmt::format("fetch_every: the last push before a fetch is {} versions old by "
                                 "the worker's own pushes alone, and max_staleness {} allows {}; "
                                 "fetch more often, or raise the bound",
                                 own, ActionName(guard.action), guard.bound));
}

/// Checks that workers can fetch weights less often than they push.
void CheckFetches(Draft draft, Diagnostics diagnostics) {
  constexpr const char* kPath = "worker.fetch_every";
  for (const char* key : {"worker.algorithm", "worker.push_every", kPath}) {
    if (!draft.IsUsable(key)) return;
  }
  const WorkerSpec& worker = draft.spec.worker;
  const AlgorithmRow& algorithm = RowOf(worker.algorithm);
  const auto fetch_every = static_cast<uint64_t>(worker.parameters["fetch_every"]);
  if (algorithm.pushes_per_fetch == nullptr || fetch_every == 0) return;
  if (fetch_every % worker.quantum() != 0) {
    diagnostics.Report(draft.KeySource(kPath),
                       fmt::format("fetch_every must be a multiple of push_every, {}, not {}: "
                                   "weights come with the answer to a push, and all gradients of "
                                   "a push start from the weights of one fetch",
                                   worker.quantum(), fetch_every));
    return;
  }
  for (const char* key : {"consistency.policy", "consistency.max_staleness.action"}) {
    if (!draft.IsUsable(key)) return;
  }
  const bool holds_back = draft.spec.consistency.traits().waits_for_members;
  if (worker.pushes_per_fetch() > 1 && !holds_back) CheckFetchesWithinBound(draft, diagnostics);
}

/// Checks that the servers can be divided into fragments, and that these fit into the steps of a
/// push.
void CheckFragments(Draft draft, Diagnostics diagnostics) {
  for (const char* key : {"worker.algorithm", "worker.steps", "worker.fragments",
                          "worker.fragment_delay", "worker.mixing", "cluster.servers"}) {
    if (!draft.IsUsable(key)) return;
  }
  const WorkerSpec& worker = draft.spec.worker;
  const auto delay = static_cast<uint64_t>(worker.parameters["fragment_delay"]);
  const double mixing = worker.parameters["mixing"];
  const auto report = [&](const char* key, const std::string& what) {
    diagnostics.Report(draft.KeySource(key), what);
  };
  const uint32_t fragments = worker.fragments();
  if (fragments == 1) {
    const char* key = delay > 0 ? "worker.fragment_delay" : "worker.mixing";
    if (delay > 0 || mixing > 0) {
      report(key, fmt::format("{} is of no effect without fragments; set fragments to 2 or more",
                              std::string_view(key).substr(std::string_view("worker.").size())));
    }
    return;
  }
  const size_t servers = draft.spec.cluster.servers.size();
  if (servers % fragments != 0) {
    return report("worker.fragments",
                  fmt::format("fragments must divide the number of servers, {}, and {} does not: a "
                              "fragment is the weights of some of the servers, and all are of one "
                              "size",
                              servers, fragments));
  }
  const uint64_t apart = worker.quantum() / fragments;
  if (apart == 0) {
    return report(
        "worker.fragments",
        fmt::format("fragments must be at most steps, {}, not {}: each is exchanged after "
                    "another of the steps",
                    worker.quantum(), fragments));
  }
  if (delay >= apart) {
    return report(
        "worker.fragment_delay",
        fmt::format("fragment_delay must be below steps/fragments, {}, not {}: a fragment "
                    "has to arrive before the next one leaves",
                    apart, delay));
  }
  if (delay > 0 && mixing == 0) {
    report(
        "worker.fragment_delay",
        "with mixing 0, the steps taken during fragment_delay would be lost; set mixing, which is "
        "published with 0.5");
  }
}

/// Checks that each thread has a local step to take.
void CheckThreads(Draft draft, Diagnostics diagnostics) {
  for (const char* key : {"worker.threads", "worker.steps", "worker.push_every"}) {
    if (!draft.IsUsable(key)) return;
  }
  const uint64_t quantum = draft.spec.worker.quantum();
  const uint32_t threads = draft.spec.worker.threads;
  if (threads == 1 || threads <= quantum) return;
  diagnostics.Report(draft.KeySource("worker.threads"),
                     fmt::format("threads must be at most the mini-batches of a push, {}, not {}: "
                                 "a thread beyond them would have nothing to do",
                                 quantum, threads));
}

/// Checks that there is a state to save.
void CheckSaveState(Draft draft, Diagnostics diagnostics) {
  constexpr const char* kPath = "worker.save_state.directory";
  const RunSpec& run = draft.spec;
  if (!run.worker.save_state.saves() || !draft.IsUsable(kPath)) return;
  for (const char* key : {"worker.algorithm", "optimizer.kind", "wire.push_codec"}) {
    if (!draft.IsUsable(key)) return;
  }
  if (!CarriedState(run).empty()) return;
  diagnostics.Report(
      draft.KeySource(kPath),
      fmt::format("save_state would save nothing: workers of {} carry nothing from push to push "
                  "with optimizer.kind {}, and wire.push_codec {} feeds no rounding error back; "
                  "leave save_state out",
                  RowOf(run.worker.algorithm).name, RowOf(run.optimizer.kind).name,
                  RowOf(run.wire.push_codec).name));
}

}  // namespace

void CheckWorker(const RunDraft& draft, DiagnosticList& diagnostics) {
  CheckFetches(draft, diagnostics);
  CheckFragments(draft, diagnostics);
  CheckThreads(draft, diagnostics);
  CheckSaveState(draft, diagnostics);
}

}  // namespace slipstream
