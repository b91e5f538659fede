#include "deploy/lab/world_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "common/base/limits.h"
#include "common/config/diagnostic.h"
#include "common/config/record_fields.h"
#include "common/config/scalar_types.h"
#include "common/config/yaml_tree.h"

namespace slipstream {
namespace {

constexpr double kMillisecondsMax = 1e9;

/// Returns the field of a time that is written as a number of milliseconds.
template <typename Record>
RecordField<Record> Milliseconds(const std::string& name, const std::string& doc,
                                 absl::Duration Record::*member) {
  return {.name = name,
          .doc = doc,
          .type = NumberType{.max = kMillisecondsMax},
          .get = [member](const Record& record) -> std::optional<ScalarValue> {
            return absl::ToDoubleMilliseconds(record.*member);
          },
          .set =
              [member](Record& record, const ScalarValue& value) {
                record.*member = absl::Milliseconds(std::get<double>(value));
              }};
}

template <typename Record>
RecordField<Record> Number(const std::string& name, const std::string& doc, const NumberType& type,
                           double Record::*member) {
  return {.name = name,
          .doc = doc,
          .type = type,
          .get = [member](const Record& record) -> std::optional<ScalarValue> {
            return record.*member;
          },
          .set = [member](Record& record,
                          const ScalarValue& value) { record.*member = std::get<double>(value); }};
}

using Spread = ComputeTimeSpec::Spread;

const std::vector<std::string> kSpreads = {"none", "lognormal", "pareto"};

const RecordFields<ComputeTimeSpec>& ComputeFields() {
  static const auto& fields = *new RecordFields<ComputeTimeSpec>{
      Milliseconds("fixed_ms", "What each mini-batch takes, whatever its size.",
                   &ComputeTimeSpec::fixed),
      Milliseconds("per_example_ms", "What each example takes.", &ComputeTimeSpec::per_example),
      {.name = "spread",
       .doc = "How the times of a machine's mini-batches are distributed.",
       .type = ChoiceType{kSpreads},
       .get = [](const ComputeTimeSpec& compute) -> std::optional<ScalarValue> {
         return kSpreads[static_cast<size_t>(compute.spread)];
       },
       .set =
           [](ComputeTimeSpec& compute, const ScalarValue& value) {
             const auto found = std::ranges::find(kSpreads, std::get<std::string>(value));
             compute.spread = static_cast<Spread>(found - kSpreads.begin());
           }},
      Number("sigma", "For lognormal: the standard deviation of the logarithm.",
             NumberType{.max = 3}, &ComputeTimeSpec::sigma),
      Number("alpha", "For pareto: the exponent.",
             NumberType{.min = 1, .max = 100, .is_min_excluded = true}, &ComputeTimeSpec::alpha),
      Number("machines_sigma", "How uneven machines are: the same as sigma, but once for each.",
             NumberType{.max = 3}, &ComputeTimeSpec::machines_sigma),
      Number("slow_share", "The share of machines that are slower.", NumberType{.max = 1},
             &ComputeTimeSpec::slow_share),
      Number("slower", "How many times as long they take.", NumberType{.min = 1, .max = 1000},
             &ComputeTimeSpec::slower)};
  return fields;
}

const RecordFields<NetworkSpec>& NetworkFields() {
  static const NumberType kRate = {.max = 1e6};
  static const auto& fields = *new RecordFields<NetworkSpec>{
      Milliseconds("latency_ms", "From one machine to another.", &NetworkSpec::latency),
      Number("worker_gbits", "Gbit/s of a worker's link, each way; 0: any number.", kRate,
             &NetworkSpec::worker_gbits),
      Number("server_gbits", "Gbit/s of a server's link, each way; 0: any number.", kRate,
             &NetworkSpec::server_gbits),
      Number("group_gbits",
             "Gbit/s of the link of a tree's group to the servers, each way; 0: any number.", kRate,
             &NetworkSpec::group_gbits)};
  return fields;
}

const RecordFields<WorldSpec>& ServerFields() {
  static const auto& fields = *new RecordFields<WorldSpec>{
      Milliseconds("update_ms", "What an update of a shard takes.", &WorldSpec::update)};
  return fields;
}

const RecordFields<VirtualWorkerSpec>& WorkerFields() {
  static const auto& fields = *new RecordFields<VirtualWorkerSpec>{
      {.name = "worker",
       .doc = "Its id.",
       .type = CountType{0, kWorkersMax - 1},
       .is_required = true,
       .get = [](const VirtualWorkerSpec& worker) -> std::optional<ScalarValue> {
         return uint64_t{Value(worker.worker)};
       },
       .set =
           [](VirtualWorkerSpec& worker, const ScalarValue& value) {
             worker.worker = WorkerId{static_cast<uint32_t>(std::get<uint64_t>(value))};
           }},
      Number("slower", "Its mini-batches take this many times as long.",
             NumberType{.min = 0.001, .max = 1000}, &VirtualWorkerSpec::slower),
      Milliseconds("joins_ms", "When it joins.", &VirtualWorkerSpec::joins),
      Milliseconds("leaves_ms", "When it is lost.", &VirtualWorkerSpec::leaves),
      Milliseconds("returns_ms", "When it is back.", &VirtualWorkerSpec::returns)};
  return fields;
}

/// Reads the worlds's parts, and reports what is wrong.
class WorldReader {
 public:
  explicit WorldReader(DiagnosticList& diagnostics) : diagnostics_(diagnostics) {}

  WorldSpec Read(const YamlNode& root) {
    if (root.kind != YamlNode::Kind::kMap) {
      diagnostics_.Report(root.source, "a world must be a map, not " + DescribeNode(root));
      return {};
    }
    WorldSpec world;
    for (const YamlNode::Entry& entry : root.entries) {
      if (entry.value.kind == YamlNode::Kind::kRefused) continue;
      if (entry.key == "compute") {
        ReadPart(ComputeFields(), entry, world.compute);
      } else if (entry.key == "network") {
        ReadPart(NetworkFields(), entry, world.network);
      } else if (entry.key == "server") {
        ReadPart(ServerFields(), entry, world);
      } else if (entry.key == "workers") {
        ReadWorkers(entry.value, world);
      } else {
        diagnostics_.Report(
            entry.key_source,
            fmt::format("unknown key \"{}\" of a world, which has compute, network, "
                        "server, workers",
                        entry.key));
      }
    }
    return world;
  }

 private:
  template <typename Record>
  void ReadPart(const RecordFields<Record>& fields, const YamlNode::Entry& entry, Record& record) {
    if (entry.value.kind == YamlNode::Kind::kNothing) return;
    if (entry.value.kind != YamlNode::Kind::kMap) {
      return diagnostics_.Report(
          entry.value.source,
          fmt::format("{} must be a map, as {}", entry.key, DescribeRecord(fields)));
    }
    if (auto read =
            ReadRecord(fields, entry.key, entry.key_source, entry.value, record, diagnostics_)) {
      record = *std::move(read);
    }
  }

  void ReadWorkers(const YamlNode& node, WorldSpec& world) {
    if (node.kind == YamlNode::Kind::kNothing) return;
    if (node.kind != YamlNode::Kind::kList) {
      return diagnostics_.Report(node.source,
                                 "workers must be a list of maps, as [{worker: 3, "
                                 "slower: 4}], not " +
                                     DescribeNode(node));
    }
    std::set<WorkerId> seen;
    for (const YamlNode& item : node.items) {
      if (item.kind != YamlNode::Kind::kMap) {
        diagnostics_.Report(item.source,
                            "an item of workers must be a map, as {worker: 3, slower: "
                            "4}, not " +
                                DescribeNode(item));
        continue;
      }
      const auto worker = ReadRecord(WorkerFields(), "an item of workers", item.source, item,
                                     VirtualWorkerSpec(), diagnostics_);
      if (!worker.has_value()) continue;
      CheckWorker(*worker, item.source, seen.insert(worker->worker).second);
      world.workers.push_back(*worker);
    }
  }

  void CheckWorker(const VirtualWorkerSpec& worker, const Source& source, bool is_first) {
    if (!is_first) {
      diagnostics_.Report(source, fmt::format("worker {} is there twice", Value(worker.worker)));
    }
    if (worker.leaves <= worker.joins) {
      diagnostics_.Report(source, "a worker must leave after it joins: leaves_ms > joins_ms");
    }
    const bool returns = worker.returns != absl::InfiniteDuration();
    if (returns && worker.returns <= worker.leaves) {
      diagnostics_.Report(source, "a worker must leave before it returns: returns_ms > leaves_ms");
    }
  }

  DiagnosticList& diagnostics_;
};

}  // namespace

absl::StatusOr<WorldSpec> ReadWorld(const std::string& text, const std::string& file) {
  DiagnosticList diagnostics;
  WorldSpec world;
  if (const std::optional<YamlNode> root = ParseYaml(text, file, diagnostics)) {
    world = WorldReader(diagnostics).Read(*root);
  }
  if (diagnostics.empty()) return world;
  std::string all;
  for (const Diagnostic& each : diagnostics.Sorted()) {
    if (!all.empty()) all += '\n';
    all += each.ToString();
  }
  return absl::InvalidArgumentError(all);
}

absl::StatusOr<WorldSpec> ReadWorldFile(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadYamlFile(path);
  if (!text.ok()) {
    return absl::NotFoundError(path + ": " + std::string(text.status().message()));
  }
  return ReadWorld(*text, path);
}

}  // namespace slipstream
