#include "deploy/psctl/plan/verdicts.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "deploy/psctl/prediction/exchange_costs.h"

namespace slipstream {
namespace {

std::string SecondsText(double seconds) { return CostText(CostUnit::kSeconds, seconds); }

const Prediction* Find(const std::vector<Prediction>& predictions, std::string_view policy) {
  const auto found = std::ranges::find(predictions, policy, &Prediction::policy);
  return found == predictions.end() ? nullptr : &*found;
}

/// T_sync/T_comp < R − 1, where R machines would be R times as fast if nothing had to be exchanged.
std::string OfDistributing(const Prediction& prediction) {
  const double machines = prediction.speed_up_max;
  const double share = std::max(0.0, machines / prediction.speed_up - 1);
  const std::string inequality = fmt::format("T_sync/T_comp = {:.3g} {} R - 1 = {:.3g}", share,
                                             prediction.speed_up > 1 ? "<" : ">=", machines - 1);
  if (prediction.speed_up > 1) {
    return fmt::format("{}: {}, so {} workers are {:.3g} times as fast as one machine alone.",
                       prediction.policy, inequality, prediction.workers, prediction.speed_up);
  }
  return fmt::format("{}: {}, so ONE MACHINE ALONE IS BETTER: it is {:.3g} times as fast.",
                     prediction.policy, inequality, 1 / prediction.speed_up);
}

std::string OfAllReduce(const RunSpec& run, const RunCosts& costs, const Prediction& ring,
                        const Prediction& servers) {
  const bool is_better = ring.examples_per_second > servers.examples_per_second;
  const double ratio = ring.examples_per_second / servers.examples_per_second;
  std::string text =
      fmt::format("{} makes {:.3g} times as many examples/s as {}, whose updates are the same: {}.",
                  ring.policy, is_better ? ratio : 1 / ratio, servers.policy,
                  "ALL-REDUCE IS BETTER where updates are in step");
  if (!is_better) {
    text = fmt::format("{} makes {:.3g} times as many examples/s as {}: servers are better.",
                       servers.policy, 1 / ratio, ring.policy);
  }
  const auto count = static_cast<uint32_t>(run.cluster.servers.size());
  const uint32_t workers = ring.workers;
  const double bytes = ring.model_bytes;
  text += fmt::format(
      " By alpha and beta alone an exchange takes {} over a ring, {} with {} "
      "server{}",
      SecondsText(RingSeconds(costs.ring, bytes, workers)),
      SecondsText(ServersSeconds(costs.link, bytes, workers, count)), count, count == 1 ? "" : "s");
  if (costs.processors == 0 && count <= workers && workers > 1) {
    text +=
        fmt::format("; {} is the least that bytes allow where workers sum up parts, too (BytePS)",
                    SecondsText(BytePsSeconds(bytes, costs.link.bytes_per_second, workers, count)));
  }
  return text + ".";
}

/// The parts of an exchange of one worker alone.
std::string OfMessages(const RunSpec& run, const RunCosts& costs, double bytes) {
  const auto servers = static_cast<double>(run.cluster.servers.size());
  const double moving = 2 * bytes / servers / costs.link.bytes_per_second;
  const double waiting = 2 * costs.link.latency;
  const double sending = 2 * costs.link.message;
  const double all = moving + waiting + sending;
  if (all <= 0) return "";
  const std::string parts = fmt::format(
      "A worker's exchange with a server that does nothing else is {} of bytes (M/B), {} of "
      "latency "
      "(2 alpha) and {} of messages (2 o): ",
      SecondsText(moving), SecondsText(waiting), SecondsText(sending));
  if (moving >= all / 2) {
    return parts + "bytes decide, so a faster link, a codec or more servers help.";
  }
  return parts +
         "small messages decide, so a faster link or a codec does not help; larger "
         "mini-batches do, or local steps.";
}

std::string OfSaturation(const RunCosts& costs, const Prediction& prediction) {
  if (!prediction.saturation) return "";
  const char* const station = costs.processors > 0 ? "the processors or the busiest link"
                                                   : "the busiest server or its link";
  return fmt::format(
      "{}: from {:.3g} workers on {} has no time left; each worker more adds only "
      "staleness.",
      prediction.policy, *prediction.saturation, station);
}

std::string OfTree(const RunSpec& run) {
  const uint32_t workers = run.cluster.workers;
  const uint32_t fanout = run.cluster.tree.fanout;
  const SumCosts flat = SumOf(workers, 0);
  const SumCosts tree = SumOf(workers, fanout);
  return fmt::format(
      "The tree of {} aggregators adds up {} gradients in {} additions, as a server "
      "would, but {} of them one after another instead of {}; the server's link "
      "carries {} pushes for each update instead of {}.",
      run.cluster.groups(), workers, tree.work, tree.depth, flat.depth, run.cluster.groups(),
      workers);
}

}  // namespace

std::vector<std::string> Verdicts(const RunSpec& run, const RunCosts& costs,
                                  const std::vector<Prediction>& predictions) {
  std::vector<std::string> texts;
  const auto add = [&texts](const std::string& text) {
    if (!text.empty()) texts.push_back(text);
  };
  if (predictions.empty()) return texts;
  const Prediction& own = predictions.front();
  if (own.workers > 1) add(OfDistributing(own));
  const auto best = std::ranges::max_element(predictions, {}, &Prediction::examples_per_second);
  if (own.workers > 1 && best != predictions.begin() &&
      best->examples_per_second > 1.01 * own.examples_per_second) {
    add(fmt::format("Most examples/s: {}, {:.3g} times those of {}.", best->policy,
                    best->examples_per_second / own.examples_per_second, own.policy));
  }
  const Prediction* const ring = Find(predictions, "allreduce");
  const Prediction* const servers = Find(predictions, "hardsync");
  if (ring != nullptr && servers != nullptr) add(OfAllReduce(run, costs, *ring, *servers));
  if (!own.is_all_reduce) add(OfMessages(run, costs, own.push_bytes));
  if (own.workers > 1) add(OfSaturation(costs, own));
  if (run.cluster.groups() > 0) add(OfTree(run));
  return texts;
}

}  // namespace slipstream
