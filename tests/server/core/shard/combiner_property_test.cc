#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "common/base/philox.h"
#include "common/protocol/composite_push.h"
#include "server/core/shard/combiner.h"
#include "tests/server/core/shard/combiner_fixture.h"

// A property test of Combiner against what an observer sees.

namespace slipstream {
namespace {

using PartId = Combiner::PartId;
using CompositeId = Combiner::CompositeId;

/// Random events, with the promises checked after each.
class RandomGroup {
 public:
  explicit RandomGroup(uint64_t seed) : random_(seed, 0) {
    View view = ViewOf(1, {});
    for (uint32_t worker = 0; worker < kGroup; ++worker) {
      view.members.push_back({WorkerId{worker}, Incarnation{1}, true});
    }
    combiner_.OnView(view);
  }

  void Step() {
    now_ += absl::Milliseconds(Below(200));
    switch (Below(8)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return Push(Below(kGroup));
      case 4:
      case 5:
        return AnswerOne();
      case 6:
        return Drop();
      case 7:
        return combiner_.OnAway(WorkerId{Below(kGroup)});
    }
  }

  void Take() {
    while (const std::optional<Combiner::Composite> composite = combiner_.TakeComposite(now_)) {
      OnComposite(*composite);
    }
    for (const CompositeId id : combiner_.TakeHeld(now_)) HandOn(id);
    ASSERT_GT(combiner_.NextLook(), now_);
  }

  /// Answers everything. Patience is over for whatever still waits.
  void Finish() {
    for (int round = 0; round < 100; ++round) {
      now_ += Combiner::kPatience;
      Take();
      while (!unanswered_.empty()) AnswerOne();
    }
    EXPECT_TRUE(waiting_.empty());
    EXPECT_TRUE(on_their_way_.empty());
  }

 private:
  static constexpr uint32_t kGroup = 4;

  uint32_t Below(uint32_t bound) { return random_.Below(bound); }

  void Push(uint32_t worker) {
    PushHeader header = HeaderWith(worker, ++sequences_[worker], Below(3));
    header.identity.incarnation = Incarnation{1};
    header.rests = Below(5) == 0;
    const PartId part{next_part_++};
    combiner_.OnPush(part, header, now_);
    waiting_[part] = header;
  }

  void OnComposite(const Combiner::Composite& composite) {
    ASSERT_FALSE(composite.parts.empty());
    std::vector<PushHeader> headers;
    for (const PartId part : composite.parts) {
      ASSERT_TRUE(waiting_.contains(part));
      headers.push_back(waiting_.extract(part).mapped());
      const WorkerId worker = headers.back().identity.worker;
      EXPECT_TRUE(Combine(headers.front(), headers.back()));
      EXPECT_TRUE(up_.insert(worker).second) << "two pushes of a worker are on their way";
      EXPECT_GT(headers.back().sequence, newest_up_[worker]);
      newest_up_[worker] = headers.back().sequence;
    }
    EXPECT_TRUE(std::ranges::is_sorted(
        headers, {}, [](const PushHeader& header) { return header.identity.worker; }));
    on_their_way_[composite.id] = headers;
    unanswered_.push_back(composite.id);
  }

  void AnswerOne() {
    if (unanswered_.empty()) return;
    const auto one = unanswered_.begin() + Below(static_cast<uint32_t>(unanswered_.size()));
    const CompositeId id = *one;
    unanswered_.erase(one);
    Combiner::Verdict verdict = {.is_counted = Below(4) > 0};
    if (verdict.is_counted) verdict.goes_on.assign(on_their_way_.at(id).size(), Below(2) == 0);
    const std::vector<CompositeId> handed_on = combiner_.OnAnswer(id, verdict, now_);
    EXPECT_TRUE(verdict.is_counted || std::ranges::count(handed_on, id) == 1);
    for (const CompositeId composite : handed_on) HandOn(composite);
  }

  void HandOn(CompositeId id) {
    ASSERT_TRUE(on_their_way_.contains(id));
    EXPECT_EQ(std::ranges::count(unanswered_, id), 0);
    for (const PushHeader& header : on_their_way_.at(id)) up_.erase(header.identity.worker);
    on_their_way_.erase(id);
  }

  void Drop() {
    if (waiting_.empty()) return;
    EXPECT_TRUE(combiner_.OnGone(waiting_.begin()->first, now_));
    waiting_.erase(waiting_.begin());
  }

  RandomStream random_;
  absl::Time now_ = absl::UnixEpoch();
  Combiner combiner_{{.workers = kGroup, .policy = {}}};
  std::map<uint32_t, uint64_t> sequences_;
  uint64_t next_part_ = 1;
  std::map<PartId, PushHeader> waiting_;
  std::map<CompositeId, std::vector<PushHeader>> on_their_way_;  // Also those that are held.
  std::vector<CompositeId> unanswered_;
  std::set<WorkerId> up_;
  std::map<WorkerId, Sequence> newest_up_;
};

TEST(CombinerPropertyTest, SendsEachPushOnceAndInOrderAndAnswersAll) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomGroup group(seed);
    for (int step = 0; step < 200 && !testing::Test::HasFailure(); ++step) {
      group.Step();
      group.Take();
    }
    group.Finish();
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace slipstream
