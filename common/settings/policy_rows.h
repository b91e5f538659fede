#ifndef SLIPSTREAM_COMMON_SETTINGS_POLICY_ROWS_H_
#define SLIPSTREAM_COMMON_SETTINGS_POLICY_ROWS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "common/base/limits.h"
#include "common/settings/parameters.h"

namespace slipstream {

/// The axis of who makes the weights, and so of what servers have of them. The values are the
/// places in kMakerRows.
enum class WeightsMaker : uint8_t { kServers, kServersInPlace, kWorkers };

struct MakerRow {
  WeightsMaker kind;

  /// Why servers have no version of the weights that stays as it is, to be saved, to be gone back
  /// to, or to go on from under another policy; empty if they have.
  std::string_view why_no_versions = "";
};

inline constexpr std::array kMakerRows = {
    // Each update makes a version of the one before.
    MakerRow{.kind = WeightsMaker::kServers},
    // Gradients are added to the one set of weights where these lie, by several threads in no
    // order. Weights that are read as version v hold the first v gradients, and perhaps parts of
    // later ones: they may be torn. So only rules that add go with it.
    MakerRow{.kind = WeightsMaker::kServersInPlace,
             .why_no_versions = "gradients are added to the weights in place, where no version "
                                "stays as it is"},
    // Workers add up their gradients among themselves, and each makes the next weights by the rule
    // of the optimizer. Servers hold the weights that one of the workers publishes. The members are
    // those that the run begins with, and each knows its mini-batches by its place among them.
    MakerRow{.kind = WeightsMaker::kWorkers,
             .why_no_versions = "the workers make the weights, and servers hold copies alone"},
};
static_assert(AreInOrder(kMakerRows));

constexpr const MakerRow& RowOf(WeightsMaker kind) {
  return *std::ranges::find(kMakerRows, kind, &MakerRow::kind);
}

/// The properties of a consistency policy that other code depends on; common/policy has the
/// decisions. Code that depends on a property reads it here, instead of comparing policies by name.
struct PolicyTraits {
  /// Set if a round takes from each member that owes it one gradient of the version that the round
  /// starts from, or an excuse. So no gradient is ever stale.
  bool one_per_member = false;

  /// Set if workers step with all shards at one version.
  bool in_step = false;

  /// Set if a round or a pull may wait for a member: a member that has nothing to give must say so.
  bool waits_for_members = false;

  /// Set if pulls wait for the clocks of other members.
  bool keeps_pace = false;

  /// The order in which a round's gradients are summed: that of their completion, or that of the
  /// members' ids, so that the bits do not depend on who was faster.
  enum class Order : uint8_t { kArrival, kRank };
  Order order = Order::kArrival;

  /// Says how a round combines its gradients: their mean, where all count alike or by their
  /// examples, or, for algorithms whose servers add up what workers push, their sum.
  enum class Weighing : uint8_t { kEqual, kExamples, kSum };
  Weighing weighing = Weighing::kEqual;

  /// The process that hands out mini-batches: the coordinator, in units, or the first shard, with
  /// the weights of each round.
  enum class Work : uint8_t { kUnits, kRounds };
  Work work = Work::kUnits;

  /// Set if an update does not depend on when each worker's own push comes, so that aggregators may
  /// combine the pushes of a group.
  bool takes_combined = false;

  /// Who makes the weights.
  WeightsMaker maker = WeightsMaker::kServers;

  constexpr bool adds_in_place() const { return maker == WeightsMaker::kServersInPlace; }
  constexpr bool workers_make_weights() const { return maker == WeightsMaker::kWorkers; }
  constexpr bool makes_versions() const { return RowOf(maker).why_no_versions.empty(); }
};

/// The axis of consistency policies. The values are the places in kPolicyRows.
enum class PolicyKind : uint8_t {
  kHardsync,
  kSoftsync,
  kAsync,
  kSsp,
  kBackup,
  kHogwild,
  kAllReduce
};

inline constexpr std::array kPolicyParameters = {
    ParameterRow{
        .key = "backups",
        .doc = "The number of workers whose gradients an update does not wait for. Below workers.",
        .initial = 1,
        .max = kWorkersMax - 1,
        .is_whole = true,
        .limit = ParameterRow::Limit::kBelowWorkers},
    ParameterRow{
        .key = "slack",
        .doc = "The number of pushes that a worker may be ahead of the slowest one at work.",
        .initial = 2,
        .max = 1'000'000,
        .is_whole = true},
    ParameterRow{.key = "n",
                 .doc = "An update combines max(1, workers / n) gradients. At most workers.",
                 .initial = 1,
                 .min = 1,
                 .max = kWorkersMax,
                 .is_whole = true,
                 .limit = ParameterRow::Limit::kWorkers,
                 .replaced_by = "c"},
    ParameterRow{.key = "c",
                 .doc = "An update combines exactly so many gradients, however many workers there "
                        "are, instead of workers / n; 0 leaves it to n.",
                 .initial = 0,
                 .max = kWorkersMax,
                 .is_whole = true,
                 .is_off_at_zero = true},
};

using PolicyParameters = ParameterValues<kPolicyParameters>;

struct PolicyRow {
  PolicyKind kind;
  std::string_view name;
  std::string_view doc;
  ParameterKeys parameters = {};
  PolicyTraits traits = {};

  /// Returns c, the number of gradients that one update combines for `members` members; null if
  /// that is one from each.
  uint32_t (*round_size)(const PolicyParameters& parameters, uint32_t members) = nullptr;
};

inline constexpr std::array kPolicyRows = {
    PolicyRow{.kind = PolicyKind::kHardsync,
              .name = "hardsync",
              .doc = "an update waits for every worker",
              .traits = {.one_per_member = true,
                         .in_step = true,
                         .waits_for_members = true,
                         .order = PolicyTraits::Order::kRank,
                         .weighing = PolicyTraits::Weighing::kExamples,
                         .work = PolicyTraits::Work::kRounds,
                         .takes_combined = true}},
    // n-softsync (Gupta, Zhang, Wang: Model accuracy and runtime tradeoff in distributed deep
    // learning, ICDM 2016, arXiv 1509.04210): c = ⌊λ/n⌋. With a fixed c it is the buffer of FedBuff
    // (Nguyen et al., AISTATS 2022, arXiv 2106.06639), who call c K.
    PolicyRow{.kind = PolicyKind::kSoftsync,
              .name = "softsync",
              .doc = "an update waits for as many gradients as a share of the workers",
              .parameters = {"n", "c"},
              .traits = {.takes_combined = true},
              .round_size =
                  [](const PolicyParameters& parameters, uint32_t members) {
                    const auto fixed = static_cast<uint32_t>(parameters["c"]);
                    return fixed > 0 ? fixed : members / static_cast<uint32_t>(parameters["n"]);
                  }},
    PolicyRow{.kind = PolicyKind::kAsync,
              .name = "async",
              .doc = "each gradient is an update",
              .traits = {.takes_combined = true},
              .round_size = [](const PolicyParameters&, uint32_t) { return 1u; }},
    // Stale synchronous parallel (Ho et al., NIPS 2013).
    PolicyRow{.kind = PolicyKind::kSsp,
              .name = "ssp",
              .doc = "each gradient is an update, and nobody gets far ahead of the slowest",
              .parameters = {"slack"},
              .traits = {.waits_for_members = true, .keeps_pace = true},
              .round_size = [](const PolicyParameters&, uint32_t) { return 1u; }},
    // Synchronous SGD with backup workers (Chen et al., arXiv 1604.00981).
    PolicyRow{.kind = PolicyKind::kBackup,
              .name = "backup",
              .doc = "an update waits for all workers but the slowest few",
              .parameters = {"backups"},
              .traits = {.one_per_member = true,
                         .in_step = true,
                         .waits_for_members = true,
                         .weighing = PolicyTraits::Weighing::kExamples,
                         .work = PolicyTraits::Work::kRounds},
              .round_size =
                  [](const PolicyParameters& parameters, uint32_t members) {
                    const auto backups = static_cast<uint32_t>(parameters["backups"]);
                    return members - std::min(members, backups);
                  }},
    // HOGWILD! (Niu, Recht, Ré, Wright, NIPS 2011, arXiv 1106.5730).
    PolicyRow{.kind = PolicyKind::kHogwild,
              .name = "hogwild",
              .doc = "each gradient is added in place, in no order; weights may be read torn",
              .traits = {.maker = WeightsMaker::kServersInPlace},
              .round_size = [](const PolicyParameters&, uint32_t) { return 1u; }},
    // Synchronous SGD without servers, as PyTorch's DistributedDataParallel has it (Li et al., VLDB
    // 2020, arXiv 2006.15704). To the servers, each publication is a version.
    PolicyRow{.kind = PolicyKind::kAllReduce,
              .name = "allreduce",
              .doc = "workers add up their gradients themselves; servers only keep a copy",
              .traits = {.maker = WeightsMaker::kWorkers},
              .round_size = [](const PolicyParameters&, uint32_t) { return 1u; }},
};
static_assert(AreInOrder(kPolicyRows));

inline constexpr PolicyKind kDefaultPolicy = PolicyKind::kSoftsync;

/// The most workers that add up gradients among themselves: each is connected with all others.
inline constexpr uint32_t kAllReduceWorkersMax = 256;

// Rounds that take one gradient from each member wait for members, hand out the mini-batches, and
// keep workers in step; nothing else does the last two.
static_assert(std::ranges::all_of(kPolicyRows, [](const PolicyRow& row) {
  const PolicyTraits& traits = row.traits;
  const bool has_rounds = traits.work == PolicyTraits::Work::kRounds;
  return traits.one_per_member == traits.in_step && traits.one_per_member == has_rounds &&
         (traits.waits_for_members || (!traits.one_per_member && !traits.keeps_pace));
}));

constexpr const PolicyRow& RowOf(PolicyKind kind) {
  return *std::ranges::find(kPolicyRows, kind, &PolicyRow::kind);
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_SETTINGS_POLICY_ROWS_H_
