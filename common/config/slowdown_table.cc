#include "common/config/slowdown_table.h"

#include <fmt/format.h>

#include <string>

#include "absl/time/time.h"

namespace slipstream {
namespace {

RecordFields<WorkerSlowdown> MakeSlowdownFields() {
  return {
      {.name = "delay",
       .doc = "Each mini-batch takes this much longer.",
       .type = DurationType{absl::ZeroDuration(), absl::Seconds(10)},
       .get = [](const WorkerSlowdown& slowdown) -> ScalarValue { return slowdown.delay; },
       .set = [](WorkerSlowdown& slowdown,
                 const ScalarValue& value) { slowdown.delay = std::get<absl::Duration>(value); }},
      {.name = "slower",
       .doc = "Computing a mini-batch takes this many times as long.",
       .type = NumberType{.min = 1, .max = 1000},
       .get = [](const WorkerSlowdown& slowdown) -> ScalarValue { return slowdown.slower; },
       .set = [](WorkerSlowdown& slowdown,
                 const ScalarValue& value) { slowdown.slower = std::get<double>(value); }}};
}

}  // namespace

const RecordFields<WorkerSlowdown>& SlowdownFields() {
  static const auto& fields = *new RecordFields<WorkerSlowdown>(MakeSlowdownFields());
  return fields;
}

std::optional<WorkerSlowdown> ReadSlowdown(size_t worker, const YamlNode& node,
                                           DiagnosticList& diagnostics) {
  if (node.kind == YamlNode::Kind::kRefused) return std::nullopt;
  const std::string what = fmt::format("worker {} in testing.workers", worker);
  if (node.kind != YamlNode::Kind::kMap && node.kind != YamlNode::Kind::kNothing) {
    diagnostics.Report(node.source, fmt::format("{} must be a map, as {{delay: 20ms}}, {{slower: "
                                                "4}} or {{}}, not {}",
                                                what, DescribeNode(node)));
    return std::nullopt;
  }
  return ReadRecord(SlowdownFields(), what, node.source, node, WorkerSlowdown(), diagnostics);
}

}  // namespace slipstream
