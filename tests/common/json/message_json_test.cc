#include "common/json/message_json.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "common/json/json_text.h"
#include "proto/coordinator.pb.h"
#include "proto/status.pb.h"

namespace slipstream {
namespace {

TEST(MessageJsonTest, PrintsEveryFieldUnderItsProtoName) {
  const nlohmann::ordered_json json = MessageJson(v1::RunStatus());

  EXPECT_EQ(json["weights_sha256"], "");
  EXPECT_EQ(json["phase"], "PHASE_UNSPECIFIED");
  EXPECT_EQ(json["examples_per_second"], 0);
  EXPECT_TRUE(json["shards"].is_array());
  EXPECT_EQ(json["staleness"]["mean"], 0);
}

TEST(MessageJsonTest, PrintsIdentifiersAsHexadecimalText) {
  v1::RunStatus status;
  status.set_run(0xab12);

  EXPECT_EQ(MessageJson(status)["run"], "000000000000ab12");
  status.set_run(std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(MessageJson(status)["run"], "ffffffffffffffff");
}

TEST(MessageJsonTest, PrintsLargeIntegersAsNumbersWithAllDigits) {
  v1::RunStatus status;
  status.set_updates(std::numeric_limits<uint64_t>::max() - 1);
  status.mutable_staleness()->add_histogram((uint64_t{1} << 53) + 1);
  v1::ShardStatus& shard = *status.add_shards();
  (*shard.mutable_outcomes())["APPLIED"] = (uint64_t{1} << 60) + 1;

  const std::string text = JsonLine(MessageJson(status));

  EXPECT_NE(text.find(R"("updates":18446744073709551614,)"), text.npos) << text;
  EXPECT_NE(text.find(R"("histogram":[9007199254740993])"), text.npos) << text;
  EXPECT_NE(text.find(R"("outcomes":{"APPLIED":1152921504606846977})"), text.npos) << text;
}

TEST(MessageJsonTest, PrintsNullForWhatIsNoNumberOrNotThere) {
  v1::WorkerStatus worker;
  worker.set_train_loss(std::numeric_limits<double>::quiet_NaN());
  v1::RegisterRequest request;

  EXPECT_TRUE(MessageJson(worker)["train_loss"].is_null());
  EXPECT_TRUE(MessageJson(request)["worker"].is_null());
  request.set_worker(0);
  EXPECT_EQ(MessageJson(request)["worker"], 0);
}

TEST(MessageJsonTest, PrintsMapsInTheOrderOfTheirKeys) {
  v1::ShardStatus shard;
  for (const char* outcome : {"FENCED", "APPLIED", "NONFINITE", "BUFFERED"}) {
    (*shard.mutable_outcomes())[outcome] = 1;
  }

  EXPECT_EQ(MessageJson(shard)["outcomes"].dump(),
            R"({"APPLIED":1,"BUFFERED":1,"FENCED":1,"NONFINITE":1})");
}

TEST(MessageJsonTest, ALineIsOneLine) {
  v1::RunStatus status;
  status.set_failure("first\nsecond");

  const std::string line = JsonLine(MessageJson(status));

  EXPECT_EQ(line.find('\n'), line.size() - 1);
}

}  // namespace
}  // namespace slipstream
