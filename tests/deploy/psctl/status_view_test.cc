#include "deploy/psctl/status_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/deploy/psctl/example_status.h"

namespace slipstream {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(StatusViewTest, PrintsEveryFieldUnderItsProtoName) {
  const auto json = nlohmann::json::parse(StatusJson(v1::RunStatus()));

  EXPECT_EQ(json["weights_sha256"], "");
  EXPECT_EQ(json["phase"], "PHASE_UNSPECIFIED");
  EXPECT_EQ(json["examples_per_second"], 0);
  EXPECT_TRUE(json["shards"].is_array());
}

TEST(StatusViewTest, ShowsALinePerShardAndPerWorker) {
  const std::string text = StatusText(ExampleStatus());

  EXPECT_THAT(text, HasSubstr("    1  127.0.0.1:7070       31706       99"));
  EXPECT_THAT(text, HasSubstr("     1  live   node      50"));
  EXPECT_THAT(text, HasSubstr("staleness  gradients  share"));
  EXPECT_THAT(text, Not(HasSubstr("waits for")));
}

TEST(StatusViewTest, MarksAServerThatIsSilent) {
  v1::RunStatus status = ExampleStatus();
  status.mutable_shards(1)->set_silent_seconds(21.34);

  const std::string text = StatusText(status);

  EXPECT_THAT(text, HasSubstr("  heard\n"));
  EXPECT_THAT(text, HasSubstr(" 0.2 s ago\n"));
  EXPECT_THAT(text, HasSubstr(" 21.3 s ago <-- SILENT\n"));
}

TEST(StatusViewTest, ShowsNoLossOfAWorkerThatHasNotReported) {
  v1::RunStatus status = ExampleStatus();
  for (v1::WorkerStatus& worker : *status.mutable_workers()) worker.set_examples(0);

  EXPECT_THAT(StatusText(status), HasSubstr("loss -  accuracy -"));
  EXPECT_THAT(StatusText(status), Not(HasSubstr("0.0000")));
}

TEST(StatusViewTest, NamesTheMiniBatchesThatWereLeftOut) {
  v1::RunStatus status = ExampleStatus();
  EXPECT_THAT(StatusText(status), Not(HasSubstr("left out")));
  v1::NonfiniteStatus& nonfinite = *status.mutable_workers(1)->mutable_nonfinite();
  nonfinite.set_total(3);
  nonfinite.set_in_a_row(2);
  nonfinite.set_batch(531);
  nonfinite.set_what("a loss of nan");

  EXPECT_THAT(StatusText(status),
              HasSubstr("worker 1 left out 3 mini-batches without finite numbers, 2 in a row by "
                        "now; the last, mini-batch 531, gave a loss of nan\n"));
}

TEST(StatusViewTest, SaysWhomAnOpenRoundWaitsFor) {
  v1::RunStatus status = ExampleStatus();
  status.mutable_shards(0)->set_round_size(4);
  status.mutable_shards(0)->set_round_contributions(2);
  status.mutable_shards(0)->add_waiting_for(1);
  status.mutable_shards(0)->add_waiting_for(3);

  EXPECT_THAT(StatusText(status),
              HasSubstr("shard 0 has 2 of 4 gradients and waits for workers 1, 3\n"));
}

TEST(StatusViewTest, CanShowARunThatHasNotBegun) {
  EXPECT_THAT(StatusText(v1::RunStatus()), HasSubstr("state          starting\n"));
}

}  // namespace
}  // namespace slipstream
