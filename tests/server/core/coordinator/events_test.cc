#include "server/core/coordinator/events.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/server/core/coordinator/generations_fixture.h"

namespace slipstream {
namespace {

using Note = CoordinatorNotes::Note;

constexpr absl::Time kNoon = absl::FromUnixMillis(1'700'000'000'000);

Note NoteOf(EventKind kind, std::string text, std::vector<LogField> fields = {}) {
  return {kind, false, LogLine(std::move(text), std::move(fields))};
}

TEST(RunEventsTest, AnEventSaysWhatHappenedToWhomAndWhen) {
  RunEvents events;

  events.Add(NoteOf(EventKind::kNone, "chatter"), kNoon);
  events.Add(
      {EventKind::kWorker, true, LogLine("worker died", {{"worker", 3u}, {"reason", "why"}})},
      kNoon);
  events.Add(NoteOf(EventKind::kServer, "server synced", {{"shard", 1u}}), kNoon);
  events.Add(NoteOf(EventKind::kAggregator, "aggregator came", {{"shard", 1u}}), kNoon);
  events.Add(NoteOf(EventKind::kPhase, std::string(1000, 'x')), kNoon);

  ASSERT_EQ(events.all().size(), 4u);
  const RunEvent& first = events.all()[0];
  EXPECT_EQ(first.number, 1u);
  EXPECT_EQ(first.time_ms, 1'700'000'000'000);
  EXPECT_EQ(Name(first.kind), "worker");
  EXPECT_TRUE(first.is_warning);
  EXPECT_EQ(first.text, "worker died worker=3 reason=why");
  EXPECT_EQ(first.worker, WorkerId{3});
  EXPECT_EQ(first.shard, std::nullopt);
  EXPECT_EQ(events.all()[1].shard, ShardId{1});
  EXPECT_EQ(events.all()[2].shard, std::nullopt) << "it is the aggregator's, not the server's";
  EXPECT_EQ(events.all()[3].number, 4u);
  EXPECT_EQ(events.all()[3].text.size(), RunEvents::kTextBytesMax);
}

TEST(RunEventsTest, OneThatHasTooManyLosesItsOwnOldest) {
  RunEvents events;
  events.Add(NoteOf(EventKind::kPhase, "the run's phase changes"), kNoon);
  for (uint32_t worker = 0; worker < 60; ++worker) {
    events.Add(NoteOf(EventKind::kWorker, "worker registered", {{"worker", worker}}), kNoon);
  }
  for (int i = 0; i < 1000; ++i) {
    events.Add(NoteOf(EventKind::kWorker, "worker registered", {{"worker", 7u}}), kNoon);
    events.Add(NoteOf(EventKind::kRefusal, "server refused", {{"shard", 0u}}), kNoon);
    ASSERT_LE(events.all().size(), RunEvents::kMax);
    ASSERT_TRUE(events.IsSound());
  }

  std::vector<size_t> of_worker(60);
  size_t others = 0;
  for (const RunEvent& event : events.all()) {
    event.worker.has_value() ? ++of_worker[Value(*event.worker)] : ++others;
  }
  EXPECT_EQ(events.all()[0].text, "the run's phase changes");
  for (uint32_t worker = 0; worker < 60; ++worker) EXPECT_GE(of_worker[worker], 1u) << worker;
  EXPECT_GE(of_worker[7], 30u);
  EXPECT_GE(others, 30u);
  EXPECT_EQ(events.all().back().number, 2061u) << "numbers go on, and have gaps";
}

TEST(RunEventsTest, WhereNobodyHasMoreTheOldestGoes) {
  RunEvents events;
  for (uint32_t worker = 0; worker < 200; ++worker) {
    events.Add(NoteOf(EventKind::kWorker, "worker left", {{"worker", worker}}), kNoon);
  }

  ASSERT_EQ(events.all().size(), RunEvents::kMax);
  EXPECT_EQ(events.all().front().number, 200 - RunEvents::kMax + 1);
}

class CoordinatorEventsTest : public CoordinatorGenerationsTest {
 protected:
  /// Returns the texts of the coordinator's events, one a line.
  static std::string TextsOf(const Coordinator& coordinator) {
    std::string texts;
    for (const RunEvent& event : coordinator.events()) texts += event.text + "\n";
    return texts;
  }
};

TEST_F(CoordinatorEventsTest, ARestoredCoordinatorTellsWhatHappenedBefore) {
  const RunSpec spec = Durable();
  TrainDurably(spec);
  ASSERT_TRUE(coordinator().OnLeave(bob_, "out of memory", now_).ok());
  coordinator().TakeNotes(kNoon);
  const uint64_t newest = coordinator().events().back().number;

  Coordinator restored(kRun, spec, now_);
  ASSERT_TRUE(restored.Restore(coordinator().Save(), now_).ok());
  restored.AddNote(NoteOf(EventKind::kState, "the coordinator was restarted"));
  restored.TakeNotes(kNoon + absl::Hours(1));

  EXPECT_EQ(TextsOf(restored), TextsOf(coordinator()) + "the coordinator was restarted\n");
  EXPECT_NE(TextsOf(restored).find("worker left worker=1 failure=\"out of memory\"\n"),
            std::string::npos);
  EXPECT_NE(TextsOf(restored).find("the run's phase changes phase=TRAINING\n"), std::string::npos);
  EXPECT_EQ(restored.events().back().number, newest + 1);
  EXPECT_EQ(restored.events().back().time_ms, absl::ToUnixMillis(kNoon + absl::Hours(1)));
  const RunEvent& left = restored.events()[restored.events().size() - 2];
  EXPECT_EQ(left.time_ms, absl::ToUnixMillis(kNoon));
  EXPECT_EQ(left.worker, bob_.worker);
  EXPECT_TRUE(left.is_warning);
}

TEST_F(CoordinatorEventsTest, AStateOfAnOlderReleaseHasNone) {
  const RunSpec spec = Durable();
  Use(spec);
  std::string bytes = coordinator().Save();
  // The last field, number 15: a message with the number 0 of the newest event.
  const std::string none("\x7a\x02\x08\x00", 4);
  ASSERT_TRUE(bytes.ends_with(none));
  bytes.erase(bytes.size() - none.size());

  Coordinator restored(kRun, spec, now_);
  ASSERT_TRUE(restored.Restore(bytes, now_).ok());

  EXPECT_TRUE(restored.events().empty());
}

TEST_F(CoordinatorEventsTest, EventsThatNobodyMakesAreRefused) {
  const RunSpec spec = Durable();
  TrainDurably(spec);
  coordinator().TakeNotes(kNoon);
  std::string bytes = coordinator().Save();
  const size_t kind = bytes.rfind("\x18\x04\x20");  // The kind of the last event, a phase.
  ASSERT_NE(kind, std::string::npos);

  for (const char unknown : {'\0', '\x0b', '\x7f'}) {
    bytes[kind + 1] = unknown;
    Coordinator restored(kRun, spec, now_);
    EXPECT_TRUE(absl::IsDataLoss(restored.Restore(bytes, now_)));
  }
}

TEST_F(CoordinatorEventsTest, AChangeSaysWhoAskedAndFromWhenOnItHolds) {
  const RunSpec spec = Durable();
  TrainDurably(spec);
  RunChange change = {.settings = spec, .sets_policy = true};
  change.settings.consistency.policy = Policy::kAsync;

  ASSERT_TRUE(coordinator().OnChange(change, now_, "192.0.2.1:40000").ok());
  coordinator().TakeNotes(kNoon);

  EXPECT_NE(TextsOf(coordinator())
                .find("an operator changes the run policy=async "
                      "learning_rate=0.05 after_epoch=0 by=192.0.2.1:40000\n"
                      "another policy takes over policy=async "),
            std::string::npos)
      << TextsOf(coordinator());
}

}  // namespace
}  // namespace slipstream
