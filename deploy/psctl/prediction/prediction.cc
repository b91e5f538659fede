#include "deploy/psctl/prediction/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/time/time.h"
#include "common/base/encoding.h"
#include "common/layout/tensor_layout.h"
#include "common/settings/policy_rows.h"
#include "common/wire/chunk_bytes.h"
#include "deploy/psctl/config/run_plan.h"
#include "deploy/psctl/prediction/queue_network.h"
#include "deploy/psctl/prediction/staleness_model.h"

namespace slipstream {
namespace {

/// The share of computing that is the backward pass: it computes gradients of inputs and of
/// weights.
constexpr double kBackwardShare = 2.0 / 3;

/// What workers that add up their gradients themselves send at once, beside the backward pass: see
/// GradientSum.
constexpr double kBucketBytes = 4 << 20;

/// A run, and what one push of it takes.
struct Loads {
  const RunSpec& run;
  const RunCosts& costs;
  const RunPlan& plan;
  double workers = 1;

  /// Those that push to servers: workers, or groups of a tree.
  uint32_t senders = 1;

  /// Gradients of senders in an update.
  double per_update = 1;

  /// How long a processor computes, and how much longer a worker's computing takes because
  /// testing.workers slows it.
  double compute = 0;
  double idle = 0;
  double push_bytes = 0;
  double pull_bytes = 0;

  double computing() const { return compute + idle; }

  /// The busiest server's share of the model, and whether it is exchanged layer by layer.
  double share = 1;
  bool streams = false;

  /// How long a push and a pull take the busiest server's link, or within a machine a processor,
  /// for all servers; how long they take beyond that at the worker's link; and all latencies.
  double in = 0;
  double out = 0;
  double in_beyond = 0;
  double out_beyond = 0;
  double delay = 0;

  /// How long one push's part of rounds and updates takes the busiest server, or all of them where
  /// they share processors.
  double work = 0;
  double fold = 0;
  double update = 0;

  bool shares_processors() const { return costs.processors > 0; }

  /// How many times longer computing takes because all compute at once.
  double crowd() const {
    return shares_processors() ? std::max(1.0, workers / costs.processors) : 1;
  }
};

/// Returns how much longer each worker's computing takes, rising.
std::vector<double> ExtraTimes(const RunSpec& run, double compute) {
  std::vector<double> extra;
  for (uint32_t worker = 0; worker < run.cluster.workers; ++worker) {
    const WorkerSlowdown slowdown = run.testing.SlowdownOf(WorkerId{worker});
    extra.push_back(absl::ToDoubleSeconds(slowdown.ExtraTime(absl::Seconds(compute))));
  }
  std::ranges::sort(extra);
  return extra;
}

/// Returns the time that stands for those of uneven workers: in step that of the slowest that
/// counts; where all wait for the slowest, its; else that whose rate is the mean of theirs.
double IdleSeconds(const RunSpec& run, const RunPlan& plan, double compute) {
  const std::vector<double> extra = ExtraTimes(run, compute);
  const PolicyTraits traits = run.consistency.traits();
  if (traits.one_per_member) return extra[std::min<size_t>(plan.round_size, extra.size()) - 1];
  if (traits.workers_make_weights() || traits.keeps_pace) return extra.back();
  double rate = 0;
  for (const double one : extra) rate += 1 / (compute + one);
  const double mean = static_cast<double>(extra.size()) / rate - compute;
  return std::isfinite(mean) ? std::max(0.0, mean) : 0;
}

Loads LoadsOf(const RunSpec& run, const RunCosts& costs, const RunPlan& plan) {
  Loads loads{.run = run, .costs = costs, .plan = plan};
  loads.workers = run.cluster.workers;
  loads.senders = run.cluster.groups() > 0 ? run.cluster.groups() : run.cluster.workers;
  loads.per_update = std::ceil(plan.round_size * loads.senders / loads.workers);
  loads.compute = costs.ComputeSeconds(run.training.batch_size) *
                  static_cast<double>(run.workers_make_weights() ? 1 : run.worker.quantum());
  loads.idle = IdleSeconds(run, plan, loads.compute);
  loads.push_bytes = static_cast<double>(EncodedBytes(run.wire.push_codec, plan.parameters));
  loads.pull_bytes = static_cast<double>(EncodedBytes(run.wire.pull_codec, plan.parameters)) /
                     static_cast<double>(run.worker.pushes_per_fetch());
  uint64_t largest = 0;
  for (const ParameterRange& range : plan.shards) {
    largest = std::max<uint64_t>(largest, range.size());
  }
  const double bytes = 4.0 * static_cast<double>(largest);
  loads.share = static_cast<double>(largest) / static_cast<double>(plan.parameters);
  loads.streams = bytes > static_cast<double>(AloneBytesMax(run.wire.chunk_bytes));

  const double chunk = run.wire.chunk_bytes > 0 ? static_cast<double>(run.wire.chunk_bytes)
                                                : std::clamp(bytes / 16, double{kAutoChunkBytesMin},
                                                             double{kAutoChunkBytesMax});
  const double messages = std::ceil(bytes / chunk);
  const double part = costs.moves_by_processors ? 1 : loads.share;
  const auto servers = static_cast<double>(plan.shards.size());
  const double all_messages = messages * (costs.moves_by_processors ? servers : 1);
  loads.in = LinkSeconds(costs.link, part * loads.push_bytes, all_messages);
  loads.out = LinkSeconds(costs.link, part * loads.pull_bytes, all_messages);
  loads.in_beyond = (1 - part) * loads.push_bytes / costs.link.bytes_per_second;
  loads.out_beyond = (1 - part) * loads.pull_bytes / costs.link.bytes_per_second;
  loads.delay = 2 * (costs.link.latency + costs.link.message);

  const double of_model = costs.processors > 0 ? 1 : loads.share;
  loads.fold = costs.fold * of_model;
  loads.update = costs.update * of_model;
  loads.work = (loads.fold * (loads.per_update - 1) + loads.update) / loads.per_update;
  return loads;
}

void SetStep(Prediction& prediction, double step) {
  prediction.step = step;
  const double rest = step - prediction.compute - prediction.exchange - prediction.update;
  prediction.waiting = rest > 1e-9 * step ? rest : 0;  // Less is rounding.
}

/// Returns how much of an exchange goes on beside computing where values are sent and fetched layer
/// by layer.
double HiddenBeside(double compute, double push, double pull) {
  return std::min(push, kBackwardShare * compute) + std::min(pull, (1 - kBackwardShare) * compute);
}

/// Takes what is hidden beside computing out of the step, which lasts `step_min` at least.
void Hide(Prediction& prediction, double hidden, double step_min) {
  double saved = std::clamp(prediction.step - step_min, 0.0, hidden);
  prediction.step -= saved;
  for (double* part : {&prediction.exchange, &prediction.waiting, &prediction.update}) {
    const double taken = std::min(*part, saved);
    *part -= taken;
    saved -= taken;
  }
}

/// Policies under which workers do not wait for each other's gradients.
void PredictFlow(const Loads& loads, Prediction& prediction) {
  const RunCosts& costs = loads.costs;
  double slower = 0;
  if (loads.run.consistency.traits().keeps_pace) {
    // Over s + 1 steps the times of a worker vary less.
    const double steps = loads.run.consistency.parameters["slack"] + 1;
    const auto workers = loads.run.cluster.workers;
    slower =
        loads.compute * (FastestOf(workers, workers, costs.compute_spread / std::sqrt(steps)) - 1);
  }
  double think = loads.idle + loads.delay + loads.in_beyond + loads.out_beyond + slower;
  // The workers of a group compute at once, on as many processors as there are for them.
  const double of_group = loads.workers / loads.senders;
  const double width = loads.shares_processors() ? std::min(costs.processors, of_group) : of_group;
  const double compute = loads.compute * of_group / width;
  const double channels = std::max(1.0, costs.processors / width);
  std::vector<Station> stations;
  if (costs.moves_by_processors) {
    stations = {{compute + loads.in + loads.work + loads.out, channels}};
  } else if (loads.shares_processors()) {
    stations = {{compute + loads.work, channels}, {loads.in}, {loads.out}};
  } else {
    think += compute;
    stations = {{loads.work}, {loads.in}, {loads.out}};
  }
  const NetworkFlow flow = SolveNetwork(loads.senders, think, stations);
  prediction.compute = loads.computing();
  prediction.exchange = loads.in + loads.out + loads.in_beyond + loads.out_beyond + loads.delay;
  prediction.update = loads.work;
  SetStep(prediction, flow.cycle);

  double computing = loads.computing();  // With the time that processors do something else.
  if (loads.shares_processors() && stations[0].demand > 0) {
    computing = flow.residence[0] * compute / stations[0].demand + loads.idle;
  }
  const double exchanging = flow.cycle - computing;
  double step_min = std::max(computing, flow.busiest);
  if (loads.run.worker.has_free_lanes()) {
    Hide(prediction, exchanging, step_min);
  } else if (loads.run.training.pipeline_depth > 1) {
    step_min = std::max(step_min, exchanging);
    Hide(prediction, exchanging, step_min);
  } else if (loads.streams) {
    Hide(prediction, HiddenBeside(loads.computing(), exchanging / 2, exchanging / 2), step_min);
  } else {
    step_min = flow.cycle_min;
  }
  const double examples = loads.workers * loads.run.training.batch_size *
                          static_cast<double>(loads.run.worker.quantum());
  prediction.examples_per_second = examples / prediction.step;
  prediction.examples_per_second_max = examples / std::min(step_min, prediction.step);
  prediction.examples_per_second_min = examples / std::max(flow.cycle_max, prediction.step);
  prediction.overlap = std::min(1.0, computing / prediction.step);
  const double one = flow.busiest / loads.senders;
  if (one > 0) {
    double alone = think;
    for (const Station& station : stations) alone += station.demand;
    prediction.saturation = alone / one * loads.workers / loads.senders;
  }
}

/// Policies in step: workers compute until enough have ended, and exchange values.
void PredictRound(const Loads& loads, Prediction& prediction) {
  const RunCosts& costs = loads.costs;
  const bool rings = prediction.is_all_reduce;
  const double examples = rings ? loads.workers : loads.plan.round_size;
  const double slowest =
      FastestOf(static_cast<uint32_t>(examples), loads.run.cluster.workers, costs.compute_spread);
  const double computing = loads.compute * loads.crowd() + loads.idle;
  const double computed = loads.compute * std::max(slowest, loads.crowd()) + loads.idle;
  double at_once = loads.senders;  // How many share the link.
  if (costs.moves_by_processors) at_once = std::max(1.0, loads.workers / costs.processors);
  double push = at_once * loads.in + loads.in_beyond;
  double pull = at_once * loads.out + loads.out_beyond;
  prediction.update = loads.fold * (examples - 1) + loads.update;
  if (loads.shares_processors()) {
    const auto servers = static_cast<double>(loads.plan.shards.size());
    prediction.update /= std::min(servers, costs.processors);
  }
  // Links are full duplex and carry whole messages one after another. So the i-th of λ workers has
  // its weights after i · out, and gradients come one by one, too: the first are received while the
  // last weights are sent. The last gradient is there after at most E[max X] + out + in and λ − 1
  // times the slower direction; spread moves that little, as whoever is late holds up those behind.
  // Values that go layer by layer share the link instead, and processors have one direction.
  const double in_turn = (loads.senders - 1) * std::max(loads.in, loads.out) + loads.in + loads.out;
  const bool is_staggered = !costs.moves_by_processors && !loads.streams && !rings;
  prediction.exchange =
      (is_staggered ? in_turn + loads.in_beyond + loads.out_beyond : push + pull) + loads.delay;
  double step_max = computed + push + pull + loads.delay + prediction.update;
  if (rings) {
    LinkCosts ring = costs.ring;
    ring.latency += 2 * ring.message;
    if (costs.moves_by_processors) ring.bytes_per_second /= loads.crowd();
    const double bytes = 4.0 * static_cast<double>(loads.plan.parameters);
    prediction.exchange = RingSeconds(ring, bytes, loads.run.cluster.workers);
    push = prediction.exchange * std::max(0.0, 1 - kBucketBytes / bytes);
    pull = 0;
    prediction.update = costs.update * loads.crowd();
    step_max = computed + prediction.exchange + prediction.update;
  }
  prediction.compute = loads.computing();
  SetStep(prediction, computed + prediction.exchange + prediction.update);
  const double step_min = std::max({computing, push, pull});
  if (loads.streams || rings) {
    Hide(prediction, HiddenBeside(loads.computing(), push, pull), step_min);
  }
  const double of_step = examples * loads.run.training.batch_size;
  prediction.examples_per_second = of_step / prediction.step;
  prediction.examples_per_second_min = of_step / step_max;
  prediction.examples_per_second_max = of_step / std::min(prediction.step, step_min);
  prediction.overlap = std::min(1.0, computing / prediction.step);
}

void PredictStaleness(const Loads& loads, Prediction& prediction) {
  const RunPlan& plan = loads.plan;
  prediction.effective_n = plan.effective_n;
  prediction.staleness = plan.expected_staleness;
  prediction.is_staleness_bounded = plan.is_staleness_bounded;
  if (plan.expected_staleness <= 0) return;
  const StalenessGuardSpec& guard = loads.run.consistency.max_staleness;
  const double bound = 2 * plan.effective_n;
  if (plan.is_staleness_bounded && guard.action != StalenessGuardSpec::Action::kNone &&
      static_cast<double>(guard.bound) <= bound) {
    return;
  }
  // Queues keep the order, so that only computing varies.
  const double spread = loads.costs.compute_spread * loads.compute / prediction.step;
  const double under_way = plan.expected_staleness * loads.per_update + 1;
  const auto beyond = [&](double others) {
    return StalenessBeyond(others, static_cast<uint32_t>(loads.per_update), spread, bound);
  };
  if (loads.run.testing.workers.empty() || loads.senders != loads.workers) {
    prediction.staleness_beyond = beyond(under_way - 1);
    return;
  }
  std::vector<double> rates;
  for (const double extra : ExtraTimes(loads.run, loads.compute)) {
    rates.push_back(1 / (prediction.step + extra - loads.idle));
  }
  const double all = std::accumulate(rates.begin(), rates.end(), 0.0);
  for (const double rate : rates) {
    prediction.staleness_beyond += rate / all * beyond(all / rate * under_way / loads.workers - 1);
  }
}

void PredictUse(const Loads& loads, Prediction& prediction) {
  const double step = prediction.step;
  const double bandwidth = loads.costs.link.bytes_per_second;
  prediction.pushes_per_second = loads.workers / step;
  prediction.updates_per_second = loads.senders / (step * loads.per_update);
  if (prediction.is_all_reduce) {
    prediction.updates_per_second = 1 / step;
    const double bytes = 2 * (loads.workers - 1) / loads.workers * loads.push_bytes;
    prediction.worker_bytes_in = prediction.worker_bytes_out = bytes / step;
    prediction.link_use = prediction.worker_bytes_out / loads.costs.ring.bytes_per_second;
  } else {
    const double rate = loads.senders / step;
    prediction.server_bytes_in = rate * loads.share * loads.push_bytes;
    prediction.server_bytes_out = rate * loads.share * loads.pull_bytes;
    prediction.worker_bytes_out = loads.push_bytes / step;
    prediction.worker_bytes_in = loads.pull_bytes / step;
    prediction.link_use =
        std::max(prediction.server_bytes_in, prediction.server_bytes_out) / bandwidth;
  }
  if (loads.shares_processors()) {
    const double moves = loads.costs.moves_by_processors ? loads.in + loads.out : 0;
    const double busy = loads.compute + loads.work + moves;
    prediction.processors_use = std::min(1.0, loads.workers / step * busy / loads.costs.processors);
  }
  if (!loads.plan.batches_per_epoch || prediction.is_all_reduce) return;
  const double steps =
      static_cast<double>(loads.run.training.steps(*loads.plan.batches_per_epoch)) /
      static_cast<double>(loads.run.worker.quantum()) / loads.workers;
  // With free lanes, aggregators fetch them for their groups.
  const double takers = loads.run.worker.has_free_lanes() ? loads.senders : loads.workers;
  const double first =
      takers * loads.out / (loads.costs.moves_by_processors ? loads.costs.processors : 1);
  if (steps > 0) {
    prediction.overlap_whole = prediction.overlap * step / (step + first / std::max(1.0, steps));
  }
}

std::string PolicyName(const ConsistencySpec& consistency) {
  std::vector<std::string> facts;
  const PolicyRow& row = RowOf(consistency.policy);
  for (const auto& [key, value] : ParametersOf(row, consistency.parameters)) {
    facts.push_back(fmt::format("{} = {}", key, value));
  }
  if (facts.empty()) return std::string(row.name);
  return fmt::format("{} ({})", row.name, fmt::join(facts, ", "));
}

}  // namespace

double AloneSeconds(const RunSpec& run, const RunCosts& costs) {
  const double compute = costs.ComputeSeconds(run.training.batch_size);
  const double extra = ExtraTimes(run, compute).front();
  return (compute + extra + costs.update) / run.training.batch_size;
}

absl::StatusOr<Prediction> Predict(const RunSpec& run, const RunCosts& costs) {
  if (run.model_from != SuppliedBy::kSettings) {
    return absl::InvalidArgumentError(
        "model.from: the workers bring the model, so nothing says how "
        "large it is");
  }
  const absl::StatusOr<RunPlan> plan = PlanRun(run);
  if (!plan.ok()) return plan.status();
  const Loads loads = LoadsOf(run, costs, *plan);
  Prediction prediction;
  prediction.policy = PolicyName(run.consistency);
  prediction.workers = run.cluster.workers;
  prediction.is_all_reduce = run.workers_make_weights();
  prediction.model_bytes = 4.0 * static_cast<double>(plan->parameters);
  prediction.push_bytes = loads.push_bytes;
  if (run.consistency.traits().one_per_member || prediction.is_all_reduce) {
    PredictRound(loads, prediction);
  } else {
    PredictFlow(loads, prediction);
  }
  prediction.speed_up = prediction.examples_per_second * AloneSeconds(run, costs);
  const double computing = std::max(loads.computing(), loads.compute * loads.crowd());
  prediction.speed_up_max =
      computing > 0 ? loads.workers * loads.computing() / computing : loads.workers;
  PredictStaleness(loads, prediction);
  PredictUse(loads, prediction);
  prediction.server_memory = plan->server_bytes;
  prediction.worker_memory = plan->worker_bytes;
  prediction.machine_memory = plan->machine_bytes;
  return prediction;
}

std::vector<RunSpec> PolicyVariants(const RunSpec& run, uint32_t workers) {
  RunSpec own = run;
  own.cluster.workers = workers;
  own.policies_before.clear();
  std::vector<RunSpec> variants = {own};
  if (RowOf(run.worker.algorithm).has_local_weights) return variants;
  const auto add = [&](PolicyKind policy,
                       std::initializer_list<std::pair<const char*, double>> parameters) {
    RunSpec variant = own;
    variant.consistency.policy = policy;
    for (const auto& [key, value] : parameters) variant.consistency.parameters[key] = value;
    const PolicyTraits traits = variant.consistency.traits();
    if (!traits.takes_combined) variant.cluster.tree.fanout = 0;
    if (traits.one_per_member || traits.workers_make_weights()) {
      variant.training.pipeline_depth = 1;
      variant.worker.lanes = WorkerSpec::Lanes();
      variant.consistency.max_staleness = {};
    }
    const bool is_there = std::ranges::any_of(variants, [&](const RunSpec& other) {
      return PolicyName(other.consistency) == PolicyName(variant.consistency);
    });
    if (!is_there) variants.push_back(std::move(variant));
  };
  add(PolicyKind::kHardsync, {});
  add(PolicyKind::kSoftsync, {{"n", 1}, {"c", 0}});
  if (workers > 1) add(PolicyKind::kSoftsync, {{"n", workers}, {"c", 0}});
  add(PolicyKind::kSsp, {});
  if (workers > run.consistency.parameters["backups"]) add(PolicyKind::kBackup, {});
  if (workers > 1 && workers <= kAllReduceWorkersMax) add(PolicyKind::kAllReduce, {});
  return variants;
}

}  // namespace slipstream
