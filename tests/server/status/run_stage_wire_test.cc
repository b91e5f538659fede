#include "server/status/run_stage_wire.h"

#include <gtest/gtest.h>

#include <string>

namespace slipstream {
namespace {

google::protobuf::RepeatedPtrField<v1::RunStage> OneStage(const std::string& policy) {
  google::protobuf::RepeatedPtrField<v1::RunStage> stages;
  stages.Add()->set_policy(policy);
  return stages;
}

TEST(RunStageWireTest, RefusesWhatItDoesNotKnow) {
  EXPECT_TRUE(absl::IsInvalidArgument(FromWire(OneStage("softsink")).status()));
  auto stages = OneStage("softsync");
  v1::PolicyParameter& parameter = *stages.Mutable(0)->add_parameters();
  for (const char* const key : {"slack", "", "m"}) {
    parameter.set_key(key);
    EXPECT_TRUE(absl::IsInvalidArgument(FromWire(stages).status())) << key;
  }
  parameter.set_key("n");
  EXPECT_TRUE(FromWire(stages).ok());
}

TEST(RunStageWireTest, RefusesMoreStagesThanARunHas) {
  auto stages = OneStage("async");
  while (stages.size() < static_cast<int>(kRunStagesMax)) stages.Add()->set_policy("async");
  EXPECT_TRUE(FromWire(stages).ok());
  stages.Add()->set_policy("async");
  EXPECT_TRUE(absl::IsInvalidArgument(FromWire(stages).status()));
}

}  // namespace
}  // namespace slipstream
