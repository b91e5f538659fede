#include "tests/simulation/trace_text.h"

#include <fmt/format.h>

namespace slipstream {
namespace {

/// Returns what an answer to a worker's training call says to it: "clock 3, computes 8+2".
std::string TextOf(WorkerClock clock, const std::optional<RoundWork>& work) {
  std::string text = fmt::format("clock {}", Value(clock));
  if (!work.has_value()) return text;
  switch (work->kind) {
    case RoundWork::Kind::kCompute:
      return text + fmt::format(", computes {}+{}", work->batches.first, work->batches.count);
    case RoundWork::Kind::kExcused:
      return text + ", excused";
    case RoundWork::Kind::kFinished:
      return text + ", finished";
  }
  return text;
}

}  // namespace

std::string TextOf(const WeightsHeader& weights) {
  std::string text =
      fmt::format("version {} of generation {} in stage {}, {}", Value(weights.version),
                  Value(weights.generation), weights.stage, TextOf(weights.clock, weights.work));
  if (weights.unchanged) text += ", unchanged";
  for (const PartAnswer& part : weights.parts) {
    text += fmt::format("; {}", TextOf(part.clock, part.work));
  }
  if (weights.examples > 0) text += fmt::format(", of {} examples", weights.examples);
  if (weights.stamp.has_value()) {
    text += fmt::format(", stamp {}.{}", Value(weights.stamp->publisher), weights.stamp->number);
  }
  if (weights.label > 0) text += fmt::format(", label {}", weights.label);
  if (weights.base.has_value()) text += fmt::format(", on {}", Value(*weights.base));
  return text;
}

std::string TextOf(const ServerOrders& orders) {
  std::string text =
      fmt::format("{}: {}, stage {} of {}, view {} of {}, grant {}", orders.number,
                  Name(orders.phase), orders.stage, orders.stages.size(), Value(orders.view.number),
                  orders.view.members.size(), orders.grant);
  if (orders.ends_work) text += ", work ends";
  if (orders.drain_version > Version{}) {
    text += fmt::format(", drains by {}", Value(orders.drain_version));
  }
  if (orders.save.number > 0) {
    text += fmt::format(", save {} of {}", orders.save.number, Value(orders.save.version));
  }
  for (const ShardReturn& shard : orders.returns)
    text += fmt::format(", generation {}", Value(shard.generation));
  if (orders.may_exit) text += ", may exit";
  if (!orders.failure.empty()) text += ", failed: " + orders.failure;
  return text;
}

std::string TextOf(const PushReply& reply) {
  std::string text = fmt::format("{} version {} lag {}", Name(reply.outcome), Value(reply.version),
                                 reply.staleness);
  if (reply.first_outcome.has_value())
    text += fmt::format(", at first {}", Name(*reply.first_outcome));
  if (!reply.message.empty()) text += ": " + reply.message;
  return text;
}

std::string TextOf(const Update& update) {
  if (update.is_empty) return "without a gradient";
  return fmt::format("rate {}, sum times {}, step times {}{}", update.learning_rate,
                     update.inverse_divisor, update.step_scale,
                     update.is_drafted ? ", drafted" : "");
}

std::string StateOf(const ShardMachine& machine) {
  const NamedLack lack = machine.Lacks();
  std::string lacks = lack.members.empty() ? fmt::format("{} more", lack.gradients) : "";
  for (const WorkerId worker : lack.members)
    lacks += fmt::format("{}{}", lacks.empty() ? "worker " : ", ", Value(worker));
  return fmt::format(
      "generation {} version {} of {}, round of {} and {} excused lacks {}{}, {} waiting, {} "
      "bytes{}",
      Value(machine.generation()), Value(machine.published()), Value(machine.decided()),
      machine.round().contributions(), machine.round().excused(), lacks,
      lack.is_held_back ? " (held back)" : "", machine.waiting(), machine.bytes_queued(),
      machine.is_drained() ? ", drained" : "");
}

std::string StateOf(const Coordinator& coordinator) {
  return fmt::format("{}, stage {}, {} live, {} of {} batches done{}", Name(coordinator.phase()),
                     coordinator.stage(), coordinator.membership().live(),
                     coordinator.batches_done(), coordinator.batches_total(),
                     coordinator.WorkEnds() ? ", no more work" : "");
}

}  // namespace slipstream
