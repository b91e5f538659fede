#include "deploy/psctl/config/run_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "common/layout/shard_map.h"
#include "common/model/net_shapes.h"
#include "common/model/presets.h"
#include "common/process/process_limits.h"
#include "common/settings/carried_state.h"
#include "common/settings/policy_rows.h"
#include "common/settings/same_rounds.h"
#include "common/settings/shards.h"
#include "common/settings/worker_memory.h"
#include "deploy/psctl/text_table.h"

namespace slipstream {
namespace {

using Json = nlohmann::ordered_json;

// A worker or an aggregator takes about this much before it has a model, most of it for gRPC. The
// figure of a server counts its own.
constexpr uint64_t kProgramBytes = uint64_t{12} << 20;

absl::StatusOr<NetShapes> ShapesOf(const ModelSpec& model) {
  const std::optional<ModelSpec> preset = FindPreset(model.preset);
  const auto shapes = InferShapes(model.layers.empty() && preset ? *preset : model);
  if (const auto* error = std::get_if<ShapeError>(&shapes)) {
    return absl::InvalidArgumentError("model: " + error->Text());
  }
  return std::get<NetShapes>(shapes);
}

std::optional<uint64_t> BatchesPerEpoch(const RunSpec& spec) {
  const bool are_generated =
      spec.data.from == SuppliedBy::kSettings && spec.data.format == DataSpec::Format::kSynthetic;
  const std::optional<uint64_t> examples =
      are_generated ? spec.data.train_examples : spec.fixed_examples();
  if (!examples.has_value()) return std::nullopt;
  const uint64_t batch = spec.training.batch_size;
  return (*examples + batch - 1) / batch;
}

bool LetsNothingBeyond(StalenessGuardSpec::Action action) {
  using Action = StalenessGuardSpec::Action;
  return action == Action::kReject || action == Action::kBlock || action == Action::kDrop;
}

/// Returns whether workers compute on a processor, or may find no GPU.
bool MayUseProcessor(const RunSpec& spec) {
  const DeviceChoice::Kind kind = spec.compute.device.kind;
  return kind == DeviceChoice::Kind::kCpu || kind == DeviceChoice::Kind::kAuto ||
         spec.worker.threads > 1;
}

/// Returns what the aggregators of all groups hold: the gradients that their workers have under
/// way, as many composites, and with free lanes the version that they hand on and the next.
uint64_t AggregatorBytes(const RunSpec& spec, uint64_t parameters) {
  const uint64_t under_way = spec.training.pipeline_depth;
  const uint64_t versions = spec.worker.has_free_lanes() ? 2 : 0;
  const uint64_t arrays = (spec.cluster.tree.fanout + uint64_t{1}) * under_way + versions;
  return spec.cluster.groups() * arrays * parameters * sizeof(float);
}

/// Computes what follows from the model.
absl::Status PlanShards(const RunSpec& spec, RunPlan& plan) {
  const absl::StatusOr<NetShapes> net = ShapesOf(spec.model);
  if (!net.ok()) return net.status();
  const TensorLayout& layout = net->layout;
  const auto servers = static_cast<uint32_t>(spec.cluster.servers.size());
  const absl::StatusOr<ShardMap> shard_map = ShardMap::Cut(layout, servers, CutOptionsOf(spec));
  if (!shard_map.ok()) return shard_map.status();

  plan.parameters = layout.parameters();
  for (uint32_t shard = 0; shard < servers; ++shard) {
    plan.shards.push_back(shard_map->range(ShardId{shard}));
  }
  uint64_t largest = 0;
  for (const ParameterRange& shard : plan.shards) {
    largest = std::max<uint64_t>(largest, shard.size());
  }
  plan.server_bytes = ShardBytesNeeded(largest, spec);
  const WorkerMemory worker = WorkerMemoryNeeded(*net, spec, MayUseProcessor(spec));
  plan.worker_bytes = worker.bytes();
  plan.evaluation_bytes = worker.evaluation;
  plan.data = DataMemoryNeeded(spec, *net);
  const DataMemory data = plan.data.value_or(DataMemory());
  const uint64_t workers = spec.cluster.workers;
  const uint64_t programs = uint64_t{servers} * spec.cluster.groups() + workers;
  // One worker measures at a time, and mostly the same.
  plan.machine_bytes = programs * kProgramBytes + servers * plan.server_bytes + data.shared +
                       workers * (data.each + worker.training) + worker.evaluation +
                       AggregatorBytes(spec, plan.parameters);
  if (RowOf(spec.optimizer.staleness_scaling).uses_base_weights) {
    RunSpec without = spec;
    without.optimizer.staleness_scaling = kDefaultScaling;
    plan.base_weights_bytes = plan.server_bytes - ShardBytesNeeded(largest, without);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RunPlan> PlanRun(const RunSpec& spec) {
  RunPlan plan;
  if (spec.model_from == SuppliedBy::kSettings) {
    if (absl::Status planned = PlanShards(spec, plan); !planned.ok()) return planned;
  }
  const double workers = spec.cluster.workers;
  plan.round_size = spec.workers_make_weights() ? spec.cluster.workers
                                                : spec.consistency.round_size(spec.cluster.workers);
  plan.effective_n = workers / plan.round_size;
  const bool is_never_stale =
      spec.consistency.traits().one_per_member || spec.workers_make_weights();
  // A push counts from the last fetch, over (k + 1)/2 pushes of each worker where it fetches with
  // every k-th.
  const double pushes = (1.0 + static_cast<double>(spec.worker.pushes_per_fetch())) / 2;
  const uint32_t groups = spec.cluster.groups();
  const double senders = groups > 0 ? groups : workers;
  const double in_flight = senders * spec.training.pipeline_depth * pushes;
  const double per_update = std::ceil(plan.round_size * senders / workers);
  plan.expected_staleness = is_never_stale ? 0 : (in_flight - 1) / per_update;
  const StalenessGuardSpec& guard = spec.consistency.max_staleness;
  const auto bound = static_cast<double>(guard.bound);
  plan.is_staleness_bounded = LetsNothingBeyond(guard.action) && bound < plan.expected_staleness;
  if (plan.is_staleness_bounded) plan.expected_staleness = bound;
  // A worker that waits for the slowest one has nothing on the way.
  plan.is_staleness_bounded |= spec.consistency.traits().keeps_pace;
  plan.batches_per_epoch = BatchesPerEpoch(spec);
  return plan;
}

namespace {

/// Returns "softsync (n = 4)". `more`: facts beside the parameters.
template <typename Row, typename Values>
std::string RowText(const Row& row, const Values& values,
                    const std::vector<std::string>& more = {}) {
  std::vector<std::string> facts;
  for (const auto& [key, value] : ParametersOf(row, values)) {
    facts.push_back(fmt::format("{} = {}", key, value));
  }
  facts.insert(facts.end(), more.begin(), more.end());
  if (facts.empty()) return std::string(row.name);
  return fmt::format("{} ({})", row.name, fmt::join(facts, ", "));
}

/// Returns "softsync (n = 4)", or "hardsync until epoch 2, then softsync (n = 18, the same as
/// n = 30)".
std::string PolicyText(const RunSpec& spec) {
  const auto text_of = [&spec](const ConsistencySpec& consistency) {
    std::vector<std::string> more;
    if (const auto same = LargerSameN(consistency, spec.cluster.workers)) {
      more.push_back(fmt::format("the same as n = {}", *same));
    }
    return RowText(RowOf(consistency.policy), consistency.parameters, more);
  };
  std::string text;
  for (const PolicyStage& stage : spec.policies_before) {
    text += fmt::format("{} until epoch {}, then ", text_of(stage.consistency), stage.until_epoch);
  }
  return text + text_of(spec.consistency);
}

/// Returns "gradient (free lanes)", or "local_sgd (steps = 8), which servers apply by sgd with a
/// learning rate of 1"; or, where steps follow speeds or threads share them, "local_sgd (steps = 8,
/// fewer of slower workers, on 4 threads), which …".
std::string AlgorithmText(const WorkerSpec& worker) {
  const AlgorithmRow& row = RowOf(worker.algorithm);
  std::vector<std::string> more;
  if (worker.has_free_lanes()) more.emplace_back("free lanes");
  if (worker.steps_by_speed) more.emplace_back("fewer of slower workers");
  if (worker.threads > 1) more.push_back(fmt::format("on {} threads", worker.threads));
  const std::string text = RowText(row, worker.parameters, more);
  if (!row.has_local_weights) return text;
  return fmt::format("{}, which servers apply by {} with a learning rate of {}", text,
                     RowText(RowOf(worker.outer.kind), worker.outer.parameters),
                     worker.outer.learning_rate);
}

/// Returns "4 (2 before each server): each makes one push of those of up to 2 workers". REQUIRES:
/// there are aggregators.
std::string AggregatorsText(const ClusterSpec& cluster) {
  const uint32_t groups = cluster.groups();
  return fmt::format("{} ({} before each server): each makes one push of those of up to {} workers",
                     groups * cluster.servers.size(), groups,
                     std::min(cluster.tree.fanout, cluster.workers));
}

/// Returns "81.2 MiB, of which 12.0 MiB for the weights that gradients under way were computed
/// from"
std::string MemoryText(const RunPlan& plan) {
  const std::string all = BytesText(plan.server_bytes);
  if (plan.base_weights_bytes == 0) return all;
  return fmt::format("{}, of which {} for the weights that gradients under way were computed from",
                     all, BytesText(plan.base_weights_bytes));
}

/// Returns "42.0 MiB beside its data, on a processor: 12.0 MiB to train, 30.0 MiB to measure"
std::string WorkerMemoryText(const RunSpec& spec, const RunPlan& plan) {
  const std::string all =
      fmt::format("{} beside its data{}", BytesText(plan.worker_bytes),
                  MayUseProcessor(spec) ? ", on a processor" : " and its GPU's own memory");
  if (plan.evaluation_bytes == 0) return all;
  return fmt::format("{}: {} to train, {} to measure", all,
                     BytesText(plan.worker_bytes - plan.evaluation_bytes),
                     BytesText(plan.evaluation_bytes));
}

/// Returns "175.8 MiB that the workers of a machine share, and 234.4 KiB of each"
std::string DataMemoryText(const RunPlan& plan) {
  if (!plan.data) return "known where the data are";
  const std::string each = BytesText(plan.data->each) + " of each worker";
  if (plan.data->shared == 0) return each;
  return fmt::format("{} that the workers of a machine share, and {}", BytesText(plan.data->shared),
                     each);
}

/// Returns "every 10s to state: weights of easgd". REQUIRES: it is saved.
std::string SaveStateText(const RunSpec& spec) {
  const WorkerSpec::SaveState& save_state = spec.worker.save_state;
  return fmt::format("every {} to {}: {}", absl::FormatDuration(save_state.interval),
                     save_state.directory, fmt::join(CarriedState(spec), ", "));
}

std::string BatchesText(const RunSpec& spec, const RunPlan& plan) {
  if (spec.is_endless()) return "no limit";
  if (plan.batches_per_epoch) return fmt::format("{}", *plan.batches_per_epoch);
  return spec.data.from == SuppliedBy::kSettings ? "known once a worker has read the data"
                                                 : "known once a worker has said how many it has";
}

}  // namespace

std::string MemoryWarning(const RunSpec& spec, uint64_t available) {
  const absl::StatusOr<RunPlan> plan = PlanRun(spec);
  if (!plan.ok() || plan->machine_bytes <= available) return "";
  return fmt::format(
      "the run takes about {} of memory, and {} are free on this machine; use fewer "
      "cluster.workers, a smaller training.batch_size, or a smaller model",
      BytesText(plan->machine_bytes), BytesText(available));
}

std::string PlanText(const RunSpec& spec, const RunPlan& plan) {
  const bool is_known = !plan.shards.empty();
  const std::string unknown = "known once a worker has named its tensors";
  const std::string of_last = spec.policies_before.empty() ? "" : ", under the last policy";
  std::vector<std::pair<std::string, std::string>> facts = {
      {"run", spec.name},
      {"parameters", is_known ? fmt::format("{}", plan.parameters) : unknown},
      {"workers", fmt::format("{}", spec.cluster.workers)},
      {"policy", PolicyText(spec)},
      {"workers push", AlgorithmText(spec.worker)},
      {"gradients per update (c)", fmt::format("{}{}", plan.round_size, of_last)},
      {"effective n (workers/c)", fmt::format("{:.3g}{}", plan.effective_n, of_last)},
      {"expected mean staleness",
       fmt::format("{}{:.3g}{}", plan.is_staleness_bounded ? "at most " : "",
                   plan.expected_staleness, of_last)},
      {"server memory, at most", is_known ? MemoryText(plan) : unknown},
      {"worker memory, about", is_known ? WorkerMemoryText(spec, plan) : unknown},
      {"epochs", spec.is_endless() ? "until a worker or psctl stop ends it, or by max_seconds"
                                   : fmt::format("{}", spec.training.epochs)},
      {"batches per epoch", BatchesText(spec, plan)},
  };
  if (spec.cluster.groups() > 0) {
    facts.insert(facts.begin() + 3, {"aggregators", AggregatorsText(spec.cluster)});
  }
  if (is_known && spec.data.from == SuppliedBy::kSettings) {
    facts.push_back({"data in memory, about", DataMemoryText(plan)});
  }
  if (is_known) {
    facts.push_back(
        {"on one machine, about",
         fmt::format("{}{}; this one has {}", BytesText(plan.machine_bytes),
                     plan.data ? "" : " beside the data", BytesText(ReadMemoryBytes().limit))});
  }
  if (spec.worker.save_state.saves()) {
    facts.push_back({"workers save their state", SaveStateText(spec)});
  }
  if (!is_known) return FormatFacts(facts);
  std::vector<TableRow> rows;
  for (size_t shard = 0; shard < plan.shards.size(); ++shard) {
    const ParameterRange& range = plan.shards[shard];
    rows.push_back({fmt::format("{}", shard), fmt::format("{}", range.begin),
                    fmt::format("{}", range.end), fmt::format("{}", range.size()),
                    spec.cluster.servers[shard]});
  }
  return FormatFacts(facts) + "\n" +
         FormatTable({"shard", "begin", "end", "parameters", "server"}, rows);
}

Json PlanJson(const RunSpec& spec, const RunPlan& plan) {
  Json shards = Json::array();
  for (size_t shard = 0; shard < plan.shards.size(); ++shard) {
    shards.push_back({{"shard", shard},
                      {"begin", plan.shards[shard].begin},
                      {"end", plan.shards[shard].end},
                      {"server", spec.cluster.servers[shard]}});
  }
  return {
      {"name", spec.name},
      {"parameters", plan.shards.empty() ? Json(nullptr) : Json(plan.parameters)},
      {"workers", spec.cluster.workers},
      {"aggregators", spec.cluster.groups() * spec.cluster.servers.size()},
      {"policy", RowOf(spec.consistency.policy).name},
      {"round_size", plan.round_size},
      {"effective_n", plan.effective_n},
      {"expected_staleness", plan.expected_staleness},
      {"server_bytes", plan.shards.empty() ? Json(nullptr) : Json(plan.server_bytes)},
      {"worker_bytes", plan.shards.empty() ? Json(nullptr) : Json(plan.worker_bytes)},
      {"data_bytes_shared", plan.data ? Json(plan.data->shared) : Json(nullptr)},
      {"data_bytes_each", plan.data ? Json(plan.data->each) : Json(nullptr)},
      {"machine_bytes", plan.shards.empty() ? Json(nullptr) : Json(plan.machine_bytes)},
      {"worker_state_saved",
       spec.worker.save_state.saves() ? CarriedState(spec) : std::vector<std::string>()},
      {"epochs", spec.training.epochs},
      {"batches_per_epoch", plan.batches_per_epoch ? Json(*plan.batches_per_epoch) : Json(nullptr)},
      {"shards", std::move(shards)}};
}

}  // namespace slipstream
