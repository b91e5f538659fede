// Aggregators report to the coordinator as servers do.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/server/control_plane/coordinator_service_fixture.h"

namespace slipstream {
namespace {

TEST_F(CoordinatorServiceTest, AggregatorsAndTheirWorkersLearnEachOthersAddresses) {
  RunSpec spec = Spec();
  spec.cluster.workers = 3;
  spec.cluster.tree.fanout = 2;
  Start(spec);
  for (uint32_t group = 0; group < 2; ++group) {
    v1::SyncServerRequest request;
    request.mutable_aggregator()->set_group(group);
    request.mutable_aggregator()->set_parts(10 + group);
    request.set_address("rack:" + std::to_string(group));
    request.set_settings("settings");
    request.set_instance(10 + group);
    v1::SyncServerReply reply;
    ASSERT_TRUE(Call(&Stub::SyncServer, request, reply).ok());
    EXPECT_EQ(reply.upstream(), group == 0 ? "" : "localhost:1");
    if (group == 0) Sync();
  }

  std::vector<std::string> aggregators;
  for (uint32_t worker = 0; worker < 4; ++worker) {
    v1::RegisterReply reply;
    ASSERT_TRUE(Call(&Stub::Register, v1::RegisterRequest(), reply).ok());
    aggregators.push_back(reply.aggregators_size() == 1 ? reply.aggregators(0) : "none");
  }
  EXPECT_EQ(aggregators, (std::vector<std::string>{"rack:0", "rack:0", "rack:1", "none"}));

  clock_.Advance(absl::Milliseconds(1500));
  const v1::RunStatus status = Status();
  ASSERT_EQ(status.aggregators_size(), 2);
  EXPECT_EQ(status.aggregators(1).group(), 1u);
  EXPECT_EQ(status.aggregators(1).address(), "rack:1");
  EXPECT_EQ(status.aggregators(1).parts(), 11u);
  EXPECT_DOUBLE_EQ(status.aggregators(1).silent_seconds(), 1.5);
}

TEST_F(CoordinatorServiceTest, AnAggregatorsLateReportIsNotShown) {
  RunSpec spec = Spec();
  spec.cluster.tree.fanout = 2;
  Start(spec);
  v1::SyncServerRequest request;
  request.set_address("rack:0");
  request.set_settings("settings");
  request.set_instance(10);
  for (const uint64_t call : {2, 1}) {
    request.set_call(call);
    request.mutable_aggregator()->set_parts(10 * call);
    request.mutable_aggregator()->add_waiting_for(static_cast<uint32_t>(call));
    v1::SyncServerReply reply;
    ASSERT_TRUE(Call(&Stub::SyncServer, request, reply).ok());
  }

  const v1::RunStatus status = Status();
  ASSERT_EQ(status.aggregators_size(), 1);
  EXPECT_EQ(status.aggregators(0).parts(), 20u);
  EXPECT_EQ(status.aggregators(0).waiting_for_size(), 1);
}

}  // namespace
}  // namespace slipstream
