#include "common/config/combinations.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <variant>

#include "common/base/check.h"
#include "common/base/encoding.h"
#include "common/config/field_table.h"
#include "common/config/server_address.h"

namespace slipstream {
namespace {

using Facts = const StageFacts&;

// Settings whose values say it.

constexpr const char* kGuard = "consistency.max_staleness.action";
constexpr const char* kDepth = "training.pipeline_depth";
constexpr Values kWaitsForLost{"cluster.on_worker_loss", "wait"};
constexpr Values kTree{"cluster.tree.fanout", "above 0"};
constexpr Values kSeveralWorkers{"cluster.workers", "above 1"};
constexpr Values kManyWorkers{"cluster.workers", "above 256"};
constexpr Values kPoliciesBefore{"consistency.before", "given"};
constexpr Values kBlocks{kGuard, "block"};
constexpr Values kGuards{kGuard, "other than none"};
constexpr Values kOwnData{"data.from", "settings"};
constexpr Values kWorkersData{"data.from", "workers"};
constexpr Values kSaves{"durability.level", "other than memory"};
constexpr Values kUnmeasured{"evaluation.by", "nobody"};
constexpr Values kOwnModel{"model.from", "settings"};
constexpr Values kWorkersModel{"model.from", "workers"};
constexpr Values kStartsFromFile{"model.init", "given"};
constexpr Values kSquaredError{"model.loss", "mse"};
constexpr Values kClipsNorm{"optimizer.clip_norm", "above 0"};
constexpr Values kClipsValues{"optimizer.clip_value", "above 0"};
constexpr Values kPerTensor{"optimizer.per_tensor", "given"};
constexpr Values kDecays{"optimizer.weight_decay", "above 0"};
constexpr Values kReadersHold{"readers.on_lag", "wait"};
constexpr Values kKeepsVersions{"readers.versions_kept", "above 1"};
constexpr Values kNotDeep{kDepth, "1"};
constexpr Values kDeep{kDepth, "above 1"};
constexpr Values kStartsFromCheckpoint{"training.start_from.checkpoint", "given"};
constexpr Values kTarget{"training.target_accuracy", "above 0"};
constexpr Values kHandsOut{"training.work", "handed_out"};
constexpr Values kEncodedPulls{"wire.pull_codec", "other than fp32"};
constexpr Values kEncodedPushes{"wire.push_codec", "other than fp32"};
constexpr Values kSharedMemory{"wire.transport", "shm"};
constexpr Values kFragments{"worker.fragments", "above 1"};
constexpr Values kFreeLanes{"worker.lanes", "free"};
constexpr Values kSavesState{"worker.save_state.directory", "given"};
constexpr Values kStepsBySpeed{"worker.steps_by_speed", "true"};
constexpr Values kThreads{"worker.threads", "above 1"};
static_assert(kAllReduceWorkersMax == 256);

// Policies.

constexpr const char* kPolicy = "consistency.policy";
constexpr Values kWorkersMakeWeights{kPolicy, "",
                                     [](Facts f) { return f.traits.workers_make_weights(); }};
constexpr Values kAddsInPlace{kPolicy, "", [](Facts f) { return f.traits.adds_in_place(); }};
constexpr Values kMakesNoVersions{kPolicy, "", [](Facts f) { return !f.traits.makes_versions(); }};
constexpr Values kWaits{kPolicy, "", [](Facts f) {
                          return f.traits.waits_for_members || f.traits.workers_make_weights();
                        }};
constexpr Values kTakesFreshAlone{
    kPolicy, "",
    [](Facts f) { return f.traits.one_per_member || f.traits.workers_make_weights(); }};
constexpr Values kKeepsPace{kPolicy, "", [](Facts f) { return f.traits.keeps_pace; }};
constexpr Values kNamesBatches{kPolicy, "", [](Facts f) {
                                 return f.traits.work == PolicyTraits::Work::kRounds ||
                                        f.traits.workers_make_weights();
                               }};
constexpr Values kTakesNoCombined{kPolicy, "", [](Facts f) { return !f.traits.takes_combined; }};
constexpr Values kPolicyNotNeeded{
    kPolicy, "other than it needs",
    [](Facts f) { return !f.algorithm.why_policy.empty() && f.algorithm.policy != f.policy.kind; }};

// Algorithms, and what workers do beside them.

constexpr const char* kAlgorithm = "worker.algorithm";
constexpr Values kHasLocalWeights{kAlgorithm, "",
                                  [](Facts f) { return f.algorithm.has_local_weights; }};
constexpr Values kPushesNoSuchGradients{
    kAlgorithm, "", [](Facts f) { return !f.algorithm.pushes_gradients_of_pulled(); }};
constexpr Values kPublishes{kAlgorithm, "",
                            [](Facts f) { return f.algorithm.pushes == PushKind::kValues; }};
constexpr Values kPublishesNot{kAlgorithm, "",
                               [](Facts f) { return f.algorithm.pushes != PushKind::kValues; }};
constexpr Values kNeedsPolicy{kAlgorithm, "",
                              [](Facts f) { return !f.algorithm.why_policy.empty(); }};
constexpr Values kFetchesSeldom{"worker.fetch_every", "above push_every",
                                [](Facts f) {
                                  return f.run.worker.parameters["fetch_every"] > 0 &&
                                         f.run.worker.pushes_per_fetch() > 1;
                                },
                                "worker.push_every"};
constexpr Values kComputesOnGpu{"compute.device", "cuda", [](Facts f) {
                                  const auto device = f.run.compute.device.kind;
                                  return device == DeviceChoice::Kind::kCuda ||
                                         device == DeviceChoice::Kind::kAnyCuda;
                                }};

// Free lanes need the depth, and another policy.
constexpr Values kDeepInStep{
    kDepth, "above 1",
    [](Facts f) { return f.run.training.pipeline_depth > 1 && !f.run.worker.has_free_lanes(); }};

// Rules and compensations.

constexpr const char* kRule = "optimizer.kind";
constexpr const char* kOuter = "worker.outer.kind";
constexpr const char* kScaling = "optimizer.staleness_scaling";
constexpr Values kRuleNotAdding{kRule, "", [](Facts f) { return !f.rule.adds(); }};
constexpr Values kServersRuleNotAdding{
    kRule, "", [](Facts f) { return !f.algorithm.has_local_weights && !f.rule.adds(); }};
constexpr Values kOuterNotAdding{kOuter, "", [](Facts f) {
                                   return f.algorithm.has_local_weights &&
                                          !RowOf(f.run.worker.outer.kind).adds();
                                 }};
constexpr Values kRuleOfWeights{kRule, "", [](Facts f) { return f.rule.takes_values; }};
constexpr Values kRuleOfGradients{kRule, "", [](Facts f) { return !f.rule.takes_values; }};
constexpr Values kOuterOfWeights{kOuter, "", [](Facts f) {
                                   return f.algorithm.has_local_weights &&
                                          RowOf(f.run.worker.outer.kind).takes_values;
                                 }};
constexpr Values kScales{kScaling, "", [](Facts f) { return f.scaling.kind != kDefaultScaling; }};
constexpr Values kComparesWeights{
    kScaling, "", [](Facts f) { return f.scaling.uses_base_weights || f.scaling.keeps_history; }};

// The cluster and its wires.

constexpr Values kFeedsErrorBack{
    "wire.push_codec", "", [](Facts f) { return RowOf(f.run.wire.push_codec).feeds_error_back; }};
// Without encryption, run_checks.cc refuses such servers anyway.
constexpr Values kOverNetwork{
    "cluster.servers", "on other machines, if traffic has to be encrypted",
    [](Facts f) {
      const SecuritySpec& security = f.run.security;
      if (!security.is_encrypted() || security.accept_plaintext_risk) return false;
      return !std::ranges::all_of(f.run.cluster.servers, [](const std::string& text) {
        const std::optional<ServerAddress> address = ParseServerAddress(text);
        return !address.has_value() || address->IsLoopback();
      });
    },
    "security.mtls.ca"};

constexpr Combination kCombinations[] = {
    // Policies and the ways of workers.
    {kPolicyNotNeeded, kNeedsPolicy, "the algorithm is for one policy alone", "use {needed}"},
    {kDeepInStep, kTakesFreshAlone,
     "each gradient needs the weights that the last one made, and none is ever stale",
     "set it to 1"},
    {kFreeLanes, kWaits, "workers wait for others", "use {second}, or leave lanes at step"},
    {kFreeLanes, kBlocks, "workers wait for others", "use {second}, or leave lanes at step"},
    {kBlocks, kKeepsPace,
     "whoever is to bring a gradient to a round may wait for those that the round holds back",
     "use {first}"},
    {kFetchesSeldom, kWaits, "servers hold members back by what they fetch",
     "use {second}, or fetch with each push"},
    {kFetchesSeldom, kBlocks, "servers hold members back by what they fetch",
     "use {second}, or fetch with each push"},
    {kStepsBySpeed, kNamesBatches,
     "each worker gets the same number of mini-batches, however fast it is", "use {second}"},
    // Who makes the weights.
    {kMakesNoVersions, kPoliciesBefore, "{maker}", "make it the run's only policy"},
    {kMakesNoVersions, kSaves, "{maker}", "use {first}, or set durability.level memory"},
    {kStartsFromCheckpoint, kWorkersMakeWeights,
     "the workers make the weights, and servers hold copies alone",
     "use model.init with a file that psctl checkpoint export has written"},
    {kServersRuleNotAdding, kAddsInPlace,
     "several threads change the weights at once, and the rule needs more than an addition",
     "use {first}"},
    {kOuterNotAdding, kAddsInPlace,
     "several threads change the weights at once, and the rule needs more than an addition",
     "use {first}"},
    {kComparesWeights, kAddsInPlace, "the weights that it compares are not kept", "use {first}"},
    {kBlocks, kAddsInPlace, "no gradient is held back for others", "use {first}"},
    {kKeepsVersions, kAddsInPlace, "no version but the newest can be read", "leave it at 1"},
    {kPushesNoSuchGradients, kWorkersMakeWeights,
     "what the workers add up are gradients of the same weights", "use {first}"},
    {kWorkersModel, kWorkersMakeWeights, "programs with the Python package push to servers",
     "use {first}"},
    {kWorkersData, kWorkersMakeWeights, "programs with the Python package push to servers",
     "use {first}"},
    {kScales, kWorkersMakeWeights, "no gradient is ever stale", "use {first}"},
    {kGuards, kWorkersMakeWeights, "no gradient is ever stale", "use {first}"},
    {kEncodedPushes, kWorkersMakeWeights, "workers add up gradients as they are", "use {first}"},
    {kEncodedPulls, kWorkersMakeWeights, "weights are pulled once, at the start", "use {first}"},
    {kManyWorkers, kWorkersMakeWeights, "each worker is connected with all others",
     "use fewer workers"},
    {kWorkersMakeWeights, kOverNetwork,
     "the connections of workers with each other are not encrypted, whatever security.mtls says",
     "set security.plaintext: accept_the_risk if the network is trusted, or use another policy"},
    // Trees.
    {kTakesNoCombined, kTree, "an update depends on when each worker's own push comes",
     "use {first}"},
    {kPushesNoSuchGradients, kTree,
     "workers push what their own steps gave, and no mean of it is taken", "use {first}"},
    {kComparesWeights, kTree, "each gradient is corrected by itself, and aggregators send means",
     "use {first}"},
    {kWaitsForLost, kTree,
     "an aggregator would keep back the pushes of a group that lacks a worker", "use {first}"},
    // Algorithms with weights of their own.
    {kDeep, kHasLocalWeights, "workers compute one push at a time", "set it to 1"},
    {kComparesWeights, kHasLocalWeights,
     "it is for gradients of pulled weights, and workers push what local steps gave",
     "use {first}"},
    // Whole weights.
    {kRuleOfWeights, kPublishesNot, "the rule takes whole weights, and workers push none",
     "use {first}"},
    {kOuterOfWeights, kPublishesNot, "the rule takes whole weights, and workers push none",
     "use {first}"},
    {kRuleOfGradients, kPublishes, "workers push whole weights", "use {first}"},
    {kSeveralWorkers, kPublishes, "the weights of several would take turns", "use 1 worker"},
    {kOwnModel, kPublishes, "a program with the Python package publishes", "use {first}"},
    {kHandsOut, kPublishes, "the program has examples of its own", "use {first}"},
    {kDeep, kPublishes, "versions follow one after another", "set it to 1"},
    {kDecays, kPublishes, "weights stay as they are", "set it to 0"},
    {kClipsValues, kPublishes, "weights stay as they are", "set it to 0"},
    {kClipsNorm, kPublishes, "weights stay as they are", "set it to 0"},
    {kPerTensor, kPublishes, "weights stay as they are", "leave it out"},
    {kScales, kPublishes, "whole weights are never stale", "use {first}"},
    {kGuards, kPublishes, "whole weights are never stale", "use {first}"},
    {kFeedsErrorBack, kPublishes, "every value has to arrive",
     "use {first}: bf16 or fp16 only if the weights are such"},
    // Threads of a worker.
    {kThreads, kRuleNotAdding,
     "the rule keeps state from step to step, and steps that threads take at once would mix it up",
     "use {second}, or leave threads at 1"},
    {kThreads, kComputesOnGpu, "threads use the processor's cores, and one keeps a GPU busy",
     "use cpu, or leave threads at 1"},
    {kThreads, kFragments,
     "each fragment leaves after a number of steps, and threads do not take steps one after "
     "another",
     "leave out fragments, or leave threads at 1"},
    {kThreads, kWorkersData,
     "a program that brings its own examples computes by itself, on as many threads as it likes",
     "use {second}, or leave threads at 1"},
    // Weights beside the pushes.
    {kFreeLanes, kNotDeep, "one gradient is sent while the next is computed",
     "set training.pipeline_depth 2, or leave lanes at step"},
    {kFreeLanes, kComparesWeights,
     "it compares with the weights that a gradient was computed from, and servers keep only those "
     "that they give for a gradient",
     "use {second}, or leave lanes at step"},
    {kFreeLanes, kReadersHold, "workers wait for readers", "use {second}, or leave lanes at step"},
    {kFreeLanes, kWorkersData,
     "a program that brings its own examples computes one gradient at a time",
     "use {second}, or leave lanes at step"},
    // Saving, measuring, and the wire.
    {kSavesState, kWorkersData,
     "ps_worker saves its state, and a program that brings its own examples does not",
     "leave save_state out"},
    {kOwnData, kWorkersModel, "nobody else knows what examples their model takes", "use {first}"},
    {kStartsFromFile, kStartsFromCheckpoint, "the checkpoint has the weights to begin with",
     "leave out one of them"},
    {kTarget, kUnmeasured, "the target is looked for in evaluations",
     "use {second}, or leave the target at 0"},
    {kTarget, kSquaredError, "that loss knows no classes, and so no accuracy",
     "use {second}, or leave the target at 0"},
    {kEncodedPushes, kSharedMemory, "shared memory carries fp32 alone", "use auto or unix"},
    {kEncodedPulls, kSharedMemory, "shared memory carries fp32 alone", "use auto or unix"},
    {kFragments, kSharedMemory, "shared memory does not carry fragments", "use auto or unix"},
};

}  // namespace

StageFacts::StageFacts(const RunSpec& of_run, const ConsistencySpec& of_stage)
    : run(of_run),
      policy(RowOf(of_stage.policy)),
      traits(policy.traits),
      algorithm(RowOf(of_run.worker.algorithm)),
      rule(RowOf(of_run.optimizer.kind)),
      scaling(RowOf(of_run.optimizer.staleness_scaling)) {}

bool Values::Hold(const StageFacts& facts) const {
  if (holds != nullptr) return holds(facts);
  const Field* field = FindField(key);
  PS_CHECK(field != nullptr);  // The table names keys that there are.
  if (!field->Applies(facts.run)) return false;
  const FieldValue value = field->get(facts.run);
  if (which == "given") return value != field->default_value();
  constexpr std::string_view kAbove = "above ";
  constexpr std::string_view kOther = "other than ";
  if (which.starts_with(kAbove)) {
    const auto& scalar = std::get<ScalarValue>(value);
    const auto* count = std::get_if<uint64_t>(&scalar);
    const double number = count != nullptr ? static_cast<double>(*count) : std::get<double>(scalar);
    return number > std::stod(std::string(which.substr(kAbove.size())));
  }
  const std::string text = WriteField(field->type, value);
  return which.starts_with(kOther) ? text != which.substr(kOther.size()) : text == which;
}

std::span<const Combination> Combinations() { return kCombinations; }

}  // namespace slipstream
