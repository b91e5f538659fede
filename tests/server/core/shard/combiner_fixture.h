#ifndef SLIPSTREAM_TESTS_SERVER_CORE_SHARD_COMBINER_FIXTURE_H_
#define SLIPSTREAM_TESTS_SERVER_CORE_SHARD_COMBINER_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "common/protocol/view.h"
#include "common/settings/policy_rows.h"
#include "server/core/shard/combiner.h"

namespace slipstream {

/// Returns the header of a gradient whose worker asks for weights.
inline PushHeader HeaderWith(uint32_t worker, uint64_t sequence, uint64_t base) {
  return {.identity = {.run = 1, .worker = WorkerId{worker}, .incarnation = Incarnation{worker}},
          .sequence = Sequence{sequence},
          .base = Version{base},
          .count = 10,
          .examples = 32,
          .pull = true};
}

inline View ViewOf(uint64_t number, const std::vector<Member>& members) {
  return {.number = ViewNumber{number}, .members = members};
}

inline constexpr uint32_t kFirst = 4;
inline constexpr uint32_t kWorkers = 3;

/// Names the worker's pushes 100 · worker + sequence.
inline Combiner::PartId Part(uint32_t worker, uint64_t sequence) {
  return Combiner::PartId{100 * worker + sequence};
}

inline Member Founding(uint32_t worker) { return {WorkerId{worker}, Incarnation{worker}, true}; }

/// Returns the traits of a policy whose rounds take a gradient of each member.
inline PolicyTraits OnePerMember() {
  PolicyTraits policy;
  policy.one_per_member = true;
  policy.waits_for_members = true;
  return policy;
}

/// A group of workers 4, 5 and 6. Their first incarnations have the same numbers.
class CombinerTest : public testing::Test {
 protected:
  void Begin() { combiner_.OnView(ViewOf(1, {Founding(4), Founding(5), Founding(6)})); }

  /// Begins, and sends the first pushes of all: as one composite, 0, or, if that of worker 5 is of
  /// an older version, as 0 and 1.
  void SendTogether() {
    Begin();
    for (const uint32_t worker : {4, 5, 6}) Push(worker, 1);
    ASSERT_EQ(Take(), "401 501 601");
  }
  void SendTwoVersions() {
    Begin();
    for (const uint32_t worker : {4, 5, 6}) Push(worker, 1, worker == 5 ? 7 : 8);
    ASSERT_EQ(Take(), "501 | 401 601");
  }

  void Push(uint32_t worker, uint64_t sequence, uint64_t base = 0) {
    Push(HeaderWith(worker, sequence, base));
  }
  void Push(const PushHeader& header) {
    combiner_.OnPush(Part(Value(header.identity.worker), Value(header.sequence)), header, now_);
  }

  /// Takes all composites there are, and returns their parts: "401 501 | 601".
  std::string Take() {
    std::string text;
    while (const std::optional<Combiner::Composite> composite = combiner_.TakeComposite(now_)) {
      if (!text.empty()) text += " | ";
      for (const Combiner::PartId part : composite->parts) {
        if (part != composite->parts.front()) text += " ";
        text += std::to_string(static_cast<uint64_t>(part));
      }
      taken_.push_back(*composite);
    }
    return text;
  }

  /// Answers the composite that was taken as number `taken`, from 0 on. Returns the numbers of
  /// those that are handed on.
  std::vector<size_t> Answer(size_t taken, std::vector<bool> goes_on) {
    const Combiner::Verdict verdict = {.is_counted = true, .goes_on = std::move(goes_on)};
    return Numbers(combiner_.OnAnswer(taken_[taken].id, verdict, now_));
  }
  std::vector<size_t> SendBack(size_t taken) {
    return Numbers(combiner_.OnAnswer(taken_[taken].id, {}, now_));
  }
  std::vector<size_t> Numbers(const std::vector<Combiner::CompositeId>& composites) const {
    std::vector<size_t> numbers;
    for (const Combiner::CompositeId id : composites) {
      const auto found = std::ranges::find(taken_, id, &Combiner::Composite::id);
      numbers.push_back(static_cast<size_t>(found - taken_.begin()));
    }
    return numbers;
  }

  std::vector<uint32_t> WaitingFor() const {
    std::vector<uint32_t> ids;
    for (const WorkerId worker : combiner_.WaitingFor()) ids.push_back(Value(worker));
    return ids;
  }

  Combiner combiner_{{.first = WorkerId{kFirst}, .workers = kWorkers, .policy = {}}};
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  std::vector<Combiner::Composite> taken_;
};

using Ids = std::vector<uint32_t>;
using Places = std::vector<size_t>;

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SERVER_CORE_SHARD_COMBINER_FIXTURE_H_
