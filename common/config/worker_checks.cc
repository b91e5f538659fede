#include "common/config/worker_checks.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "common/config/field_table.h"
#include "common/run/algorithm_rows.h"
#include "common/run/carried_state.h"
#include "common/run/policy_rows.h"

namespace slipstream {
namespace {

using Draft = const RunDraft&;
using Diagnostics = DiagnosticList&;

/// Checks that the other axes fit what the worker's algorithm needs.
void CheckAlgorithm(Draft draft, Diagnostics diagnostics) {
  if (!draft.IsUsable("worker.algorithm")) return;
  const AlgorithmRow& algorithm = RowOf(draft.spec.worker.algorithm);
  constexpr const char* kDepth = "training.pipeline_depth";
  const uint32_t depth = draft.spec.training.pipeline_depth;
  if (algorithm.has_local_weights && draft.IsUsable(kDepth) && depth > 1) {
    diagnostics.Report(draft.KeySource(kDepth),
                       fmt::format("training.pipeline_depth must be 1, not {}, with "
                                   "worker.algorithm {}, whose workers compute one push at a time",
                                   depth, algorithm.name));
  }
  constexpr const char* kPolicy = "consistency.policy";
  const PolicyKind policy = draft.spec.consistency.policy;
  const bool needs_policy = !algorithm.why_policy.empty();
  if (draft.IsUsable(kPolicy) && needs_policy && algorithm.policy != policy) {
    diagnostics.Report(
        draft.KeySource(kPolicy),
        fmt::format("worker.algorithm {} needs consistency.policy {}, {}, and not {}",
                    algorithm.name, RowOf(algorithm.policy).name, algorithm.why_policy,
                    RowOf(policy).name));
  }
  constexpr const char* kScaling = "optimizer.staleness_scaling";
  const ScalingRow& scaling = RowOf(draft.spec.optimizer.staleness_scaling);
  if (scaling.uses_base_weights && draft.IsUsable(kScaling) && algorithm.has_local_weights) {
    diagnostics.Report(draft.KeySource(kScaling),
                       fmt::format("staleness_scaling {} is for gradients of pulled weights, and "
                                   "with worker.algorithm {} workers push what local steps gave",
                                   scaling.name, algorithm.name));
  }
}

/// Checks that servers take whole weights where workers push them, and nowhere else.
void CheckRuleTakesPushes(Draft draft, Diagnostics diagnostics) {
  if (!draft.IsUsable("worker.algorithm")) return;
  const RunSpec& run = draft.spec;
  const AlgorithmRow& algorithm = RowOf(run.worker.algorithm);
  const bool are_values = algorithm.pushes == PushKind::kValues;
  for (const auto& [path, kind] : {std::pair("optimizer.kind", run.optimizer.kind),
                                   std::pair("worker.outer.kind", run.worker.outer.kind)}) {
    if (!draft.IsUsable(path) || !FindField(path)->Applies(run)) continue;
    const RuleRow& rule = RowOf(kind);
    if (rule.takes_values == are_values) continue;
    diagnostics.Report(draft.KeySource(path),
                       fmt::format("{} makes the next version of {}, and with worker.algorithm {} "
                                   "workers push {}",
                                   rule.name, rule.takes_values ? "whole weights" : "a gradient",
                                   algorithm.name, Name(algorithm.pushes)));
  }
}

/// Checks that nothing would change the weights that a program publishes.
void CheckPublishing(Draft draft, Diagnostics diagnostics) {
  const RunSpec& run = draft.spec;
  const AlgorithmRow& algorithm = RowOf(run.worker.algorithm);
  if (!draft.IsUsable("worker.algorithm") || algorithm.pushes != PushKind::kValues) return;
  struct Need {
    const char* path;
    bool is_met;
    const char* why;
  };
  const Need needs[] = {
      {"cluster.workers", run.cluster.workers == 1,
       "1 worker: the weights of several would take turns"},
      {"model.from", run.model_from == SuppliedBy::kWorkers,
       "model.from workers: a program with the Python package publishes"},
      {"training.work",
       run.training.work == TrainingSpec::Work::kOwn || run.data.from != SuppliedBy::kWorkers,
       "training.work own: the program has examples of its own"},
      {"training.pipeline_depth", run.training.pipeline_depth == 1,
       "training.pipeline_depth 1: versions follow one after another"},
      {"optimizer.weight_decay", run.optimizer.weight_decay == 0,
       "weight_decay 0: weights stay as they are"},
      {"optimizer.clip_value", run.optimizer.clip_value == 0,
       "clip_value 0: weights stay as they are"},
      {"optimizer.clip_norm", run.optimizer.clip_norm == 0,
       "clip_norm 0: weights stay as they are"},
      {"optimizer.per_tensor", run.optimizer.per_tensor.empty(),
       "no per_tensor: weights stay as they are"},
      {"optimizer.staleness_scaling", run.optimizer.staleness_scaling == kDefaultScaling,
       "staleness_scaling none: whole weights are never stale"},
      {"consistency.max_staleness.action",
       run.consistency.max_staleness.action == StalenessGuardSpec::Action::kNone,
       "no max_staleness: whole weights are never stale"},
      {"wire.push_codec", !RowOf(run.wire.push_codec).feeds_error_back,
       "an encoding that keeps every value: fp32, or bf16 or fp16 if the weights are such"},
  };
  for (const Need& need : needs) {
    if (need.is_met || !draft.IsUsable(need.path)) continue;
    diagnostics.Report(draft.KeySource(need.path),
                       fmt::format("worker.algorithm {} needs {}", algorithm.name, need.why));
  }
}

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
  if (worker.pushes_per_fetch() == 1) return;
  const ConsistencySpec& consistency = draft.spec.consistency;
  for (const char* key : {"consistency.policy", "consistency.max_staleness.action"}) {
    if (!draft.IsUsable(key)) return;
  }
  if (!consistency.traits().waits_for_members) {
    CheckFetchesWithinBound(draft, diagnostics);
    return;
  }
  const bool is_of_policy = RowOf(consistency.policy).traits.waits_for_members;
  diagnostics.Report(
      draft.KeySource(kPath),
      fmt::format("fetch_every above push_every lets workers go on without the servers' weights, "
                  "and under {} servers hold members back by what they fetch; use async, or "
                  "softsync without block",
                  is_of_policy ? RowOf(consistency.policy).name : "block"));
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

/// Checks that steps can follow speeds.
void CheckStepsBySpeed(Draft draft, Diagnostics diagnostics) {
  constexpr const char* kPath = "worker.steps_by_speed";
  const ConsistencySpec& consistency = draft.spec.consistency;
  if (!draft.spec.worker.steps_by_speed || !draft.IsUsable(kPath)) return;
  if (!draft.IsUsable("consistency.policy")) return;
  if (consistency.traits().work != PolicyTraits::Work::kRounds) return;
  diagnostics.Report(draft.KeySource(kPath),
                     fmt::format("steps_by_speed needs a policy whose workers push when they are "
                                 "ready: under {} a round names the same number of mini-batches "
                                 "to each; use softsync, async or ssp",
                                 RowOf(consistency.policy).name));
}

/// Checks that several threads can share a worker's local steps.
void CheckThreads(Draft draft, Diagnostics diagnostics) {
  constexpr const char* kPath = "worker.threads";
  const RunSpec& run = draft.spec;
  const uint32_t threads = run.worker.threads;
  if (threads == 1 || !draft.IsUsable(kPath)) return;
  const auto device = run.compute.device.kind;
  const bool is_gpu = device == DeviceChoice::Kind::kCuda || device == DeviceChoice::Kind::kAnyCuda;
  const std::string_view rule = RowOf(run.optimizer.kind).name;
  struct Obstacle {
    const char* path;
    bool is_there;
    std::string needs;
  };
  const Obstacle obstacles[] = {
      {"optimizer.kind", RowOf(run.optimizer.kind).state_arrays > 0,
       fmt::format("optimizer.kind sgd: {} keeps state from step to step, and steps that threads "
                   "take at once would mix it up",
                   rule)},
      {"compute.device", is_gpu,
       "compute.device cpu: they use the processor's cores, and one thread keeps a GPU busy"},
      {"worker.fragments", run.worker.fragments() > 1,
       "a model without fragments: each leaves after a number of steps, and threads do not take "
       "steps one after another"},
      {"data.from", run.data.from == SuppliedBy::kWorkers,
       "data.from settings: a program that brings its own examples computes by itself, on as many "
       "threads as it likes"},
  };
  for (const Obstacle& obstacle : obstacles) {
    if (!obstacle.is_there || !draft.IsUsable(obstacle.path)) continue;
    diagnostics.Report(
        draft.KeySource(kPath),
        fmt::format("threads above 1 need {}; or leave threads at 1", obstacle.needs));
  }
  const uint64_t quantum = run.worker.quantum();
  if (threads <= quantum) return;
  if (!draft.IsUsable("worker.steps") || !draft.IsUsable("worker.push_every")) return;
  diagnostics.Report(draft.KeySource(kPath),
                     fmt::format("threads must be at most the mini-batches of a push, {}, not {}: "
                                 "a thread beyond them would have nothing to do",
                                 quantum, threads));
}

/// Checks that nothing makes a worker wait for others, and that no server has to know which weights
/// a worker holds, where weights come beside the pushes.
void CheckFreeLanes(Draft draft, Diagnostics diagnostics) {
  constexpr const char* kPath = "worker.lanes";
  const RunSpec& run = draft.spec;
  if (!run.worker.has_free_lanes() || !draft.IsUsable(kPath)) return;
  const PolicyRow& policy = RowOf(run.consistency.policy);
  const StalenessGuardSpec::Action guard = run.consistency.max_staleness.action;
  const ScalingRow& scaling = RowOf(run.optimizer.staleness_scaling);
  struct Need {
    const char* path;
    bool is_met;
    std::string what;
  };
  const Need needs[] = {
      {"training.pipeline_depth", run.training.pipeline_depth > 1,
       "training.pipeline_depth 2: one gradient is sent while the next is computed"},
      {"consistency.policy", !policy.traits.waits_for_members,
       fmt::format(
           "consistency.policy softsync, async or hogwild: under {} workers wait for others",
           policy.name)},
      {"consistency.max_staleness.action", guard != StalenessGuardSpec::Action::kBlock,
       "max_staleness reject, scale or drop: with block, workers wait for others"},
      {"optimizer.staleness_scaling", !scaling.uses_base_weights,
       fmt::format("another staleness_scaling: {} compares with the weights that a gradient was "
                   "computed from, and servers keep only those that they give for a gradient",
                   scaling.name)},
      {"readers.on_lag", run.readers.on_lag != ReadersSpec::OnLag::kWait,
       "readers.on_lag report: with wait, workers wait for readers"},
      {"data.from", run.data.from == SuppliedBy::kSettings,
       "data.from settings: a program that brings its own examples computes one gradient at a "
       "time"},
  };
  for (const Need& need : needs) {
    if (need.is_met || !draft.IsUsable(need.path)) continue;
    diagnostics.Report(draft.KeySource(kPath),
                       fmt::format("lanes free need {}; or leave lanes at step", need.what));
  }
}

/// Checks that there is a state to save, and that the worker is a program that saves it.
void CheckSaveState(Draft draft, Diagnostics diagnostics) {
  constexpr const char* kPath = "worker.save_state.directory";
  const RunSpec& run = draft.spec;
  if (!run.worker.save_state.saves() || !draft.IsUsable(kPath)) return;
  for (const char* key : {"worker.algorithm", "optimizer.kind", "wire.push_codec"}) {
    if (!draft.IsUsable(key)) return;
  }
  if (CarriedState(run).empty()) {
    diagnostics.Report(
        draft.KeySource(kPath),
        fmt::format("save_state would save nothing: workers of {} carry nothing from push to push "
                    "with optimizer.kind {}, and wire.push_codec {} feeds no rounding error back; "
                    "leave save_state out",
                    RowOf(run.worker.algorithm).name, RowOf(run.optimizer.kind).name,
                    RowOf(run.wire.push_codec).name));
  }
  if (run.data.from != SuppliedBy::kWorkers || !draft.IsUsable("data.from")) return;
  diagnostics.Report(draft.KeySource(kPath),
                     "save_state needs data.from settings: ps_worker saves its state, and a "
                     "program that brings its own examples does not; leave save_state out");
}

}  // namespace

void CheckWorker(const RunDraft& draft, DiagnosticList& diagnostics) {
  CheckAlgorithm(draft, diagnostics);
  CheckRuleTakesPushes(draft, diagnostics);
  CheckPublishing(draft, diagnostics);
  CheckFetches(draft, diagnostics);
  CheckFragments(draft, diagnostics);
  CheckStepsBySpeed(draft, diagnostics);
  CheckThreads(draft, diagnostics);
  CheckFreeLanes(draft, diagnostics);
  CheckSaveState(draft, diagnostics);
}

}  // namespace slipstream
