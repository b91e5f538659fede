#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "server/control_plane/coordinator_wire.h"
#include "server/status/shard_report.h"
#include "tests/server/control_plane/coordinator_service_fixture.h"
#include "tests/support/shard_machine_driver.h"

namespace slipstream {
namespace {

using grpc::StatusCode;

constexpr uint32_t kLongWaitMs = 10'000;
const std::string kHash(64, 'a');

TEST_F(CoordinatorServiceTest, RegistersWithWhatAWorkerNeedsToStart) {
  Start();
  v1::RegisterReply reply;
  EXPECT_EQ(Call(&Stub::Register, v1::RegisterRequest(), reply).error_code(),
            StatusCode::UNAVAILABLE);
  Sync();

  ASSERT_TRUE(Call(&Stub::Register, v1::RegisterRequest(), reply).ok());

  EXPECT_EQ(reply.identity().run(), 7u);
  EXPECT_EQ(reply.settings(), "settings");
  EXPECT_EQ(reply.lease_ms(), 5000u);
  ASSERT_EQ(reply.servers_size(), 1);
  EXPECT_EQ(reply.servers(0), "localhost:1");
}

TEST_F(CoordinatorServiceTest, RefusesAServerWithOtherSettingsByKey) {
  Start();
  v1::SyncServerRequest request;
  request.set_settings("other");
  v1::SyncServerReply reply;

  const grpc::Status status = Sync(request, reply);

  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("key is other"), std::string::npos);
}

TEST_F(CoordinatorServiceTest, LogsOnceThatAServerWithOtherSettingsWasRefused) {
  Start();
  v1::SyncServerRequest request;
  request.set_settings("other");
  v1::SyncServerReply reply;

  for (int attempt = 0; attempt < 2; ++attempt) ASSERT_FALSE(Sync(request, reply).ok());

  EXPECT_EQ(
      log_.Count("server refused shard=0 address=localhost:1 reason=\"the settings of shard 0's "
                 "server differ from the coordinator's: key is other"),
      1);
}

// The text is kept, logged, and sent back in a header of gRPC's, whose size is bounded.
TEST_F(CoordinatorServiceTest, QuotesOnlyTheBeginningOfWhatAStrangerSends) {
  Start();
  v1::SyncServerRequest request;
  request.set_settings(std::string(1'000'000, 'x'));
  v1::SyncServerReply reply;

  const grpc::Status status = Sync(request, reply);

  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("key is xxx"), std::string::npos);
  EXPECT_LT(status.error_message().size(), 1200u);
}

TEST_F(CoordinatorServiceTest, AnOlderIncarnationIsFenced) {
  Start();
  Sync();
  const v1::Identity older = Register();
  v1::RegisterRequest again;
  again.set_worker(older.worker());
  v1::RegisterReply newer;
  ASSERT_TRUE(Call(&Stub::Register, again, newer).ok());

  v1::HeartbeatRequest request;
  *request.mutable_identity() = older;
  v1::HeartbeatReply reply;

  EXPECT_EQ(AskOnce(&Stub::Heartbeat, request, reply).error_code(),
            StatusCode::FAILED_PRECONDITION);
  Beat(newer.identity());
}

TEST_F(CoordinatorServiceTest, AnswersHeartbeatsThatWantItAndThoseThatFindNews) {
  Train();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  const auto stream = stub_->Heartbeat(&context);
  v1::HeartbeatRequest plain;
  *plain.mutable_identity() = ada_;
  v1::HeartbeatRequest asking = plain;
  asking.set_wants_answer(true);
  v1::HeartbeatReply reply;

  stream->Write(plain);  // Answered, since to the first heartbeat everything is news.
  ASSERT_TRUE(stream->Read(&reply));
  for (int i = 0; i < 3; ++i) stream->Write(plain);
  stream->Write(asking);
  ASSERT_TRUE(stream->Read(&reply));
  EXPECT_EQ(reply.phase(), v1::TRAINING);
  v1::LeaveRequest leave;
  *leave.mutable_identity() = bob_;
  leave.set_failure("no finite numbers");
  leave.set_ends_run(true);
  v1::LeaveReply left;
  ASSERT_TRUE(Call(&Stub::Leave, leave, left).ok());
  stream->Write(plain);

  // If the three had been answered, this would read the answer to one of them.
  ASSERT_TRUE(stream->Read(&reply));
  EXPECT_EQ(reply.phase(), v1::FAILED);
  EXPECT_NE(reply.failure().find("no finite numbers"), std::string::npos) << reply.failure();
}

TEST_F(CoordinatorServiceTest, AQuestionThatWaitsEndsWithItsStreamOrTheService) {
  Train();
  v1::GetWorkReply reply;
  for (const v1::Identity& worker : {bob_, ada_}) {
    while (GetWork(worker).state() == v1::GetWorkReply::UNIT) continue;
  }
  v1::GetWorkRequest request;
  *request.mutable_identity() = ada_;
  request.set_wait_ms(kLongWaitMs);
  grpc::ClientContext given_up;
  const auto cancelled = stub_->GetWork(&given_up);
  cancelled->Write(request);
  given_up.TryCancel();
  EXPECT_EQ(cancelled->Finish().error_code(), StatusCode::CANCELLED);

  grpc::ClientContext context;
  const auto waiting = stub_->GetWork(&context);
  waiting->Write(request);
  service_->Stop();

  // The request may have arrived after the service stopped. It is answered without a wait then.
  while (waiting->Read(&reply)) EXPECT_EQ(reply.state(), v1::GetWorkReply::WAIT);
  EXPECT_FALSE(waiting->Finish().ok());
}

TEST_F(CoordinatorServiceTest, AServiceThatStopsEndsOpenStreams) {
  Train();
  grpc::ClientContext context;
  const auto stream = stub_->Heartbeat(&context);
  v1::HeartbeatRequest request;
  *request.mutable_identity() = ada_;
  v1::HeartbeatReply reply;
  stream->Write(request);
  ASSERT_TRUE(stream->Read(&reply));

  service_->Stop();

  EXPECT_FALSE(stream->Read(&reply));
  EXPECT_FALSE(stream->Finish().ok());
  EXPECT_FALSE(AskOnce(&Stub::Heartbeat, request, reply).ok());
}

TEST_F(CoordinatorServiceTest, AWaitingWorkerIsGrantedInitializationWhenTheHolderLeaves) {
  Start();
  Sync();
  const v1::Identity ada = Register();
  const v1::Identity bob = Register();
  ASSERT_EQ(Prepare(Model(ada)).state(), v1::PrepareModelReply::GRANTED);
  v1::PrepareModelRequest waiting = Model(bob);
  waiting.set_wait_ms(kLongWaitMs);
  std::future<v1::PrepareModelReply> answer =
      std::async(std::launch::async, [&] { return Prepare(waiting); });

  ASSERT_TRUE(Leave(ada).ok());

  const v1::PrepareModelReply reply = answer.get();
  EXPECT_EQ(reply.state(), v1::PrepareModelReply::GRANTED);
  EXPECT_EQ(reply.grant(), 2u);
  EXPECT_FALSE(Finish(bob, 1).ok());
  EXPECT_TRUE(Finish(bob, 2).ok());
}

TEST_F(CoordinatorServiceTest, RefusesAnotherModelByTensor) {
  Start();
  Sync();
  const v1::Identity ada = Register();
  Prepare(Model(ada));
  v1::PrepareModelReply reply;

  const grpc::Status status = Call(&Stub::PrepareModel, Model(ada, 9), reply);

  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(),
            "tensor 0 is \"weights\" [9, 16], the run's is \"weights\" [8, 16]");
}

TEST_F(CoordinatorServiceTest, AWaitThatEndsIsAnsweredWithWhatHoldsByThen) {
  Start();
  Sync();
  const v1::Identity ada = Register();
  v1::PrepareModelRequest request = Model(ada);
  request.set_wait_ms(kLongWaitMs);
  std::promise<void> answered;
  std::thread time([&, done = answered.get_future()] {
    // A lease lasts 5 s and the call waits for 10 s, so heartbeats have to keep the worker alive.
    while (done.wait_for(std::chrono::milliseconds(10)) != std::future_status::ready) {
      clock_.Advance(absl::Seconds(1));
      Beat(ada);
    }
  });

  const v1::PrepareModelReply reply = Prepare(request);
  answered.set_value();
  time.join();

  EXPECT_EQ(reply.state(), v1::PrepareModelReply::WAIT);
  EXPECT_EQ(reply.message(), "1 of 2 workers are there");
}

TEST_F(CoordinatorServiceTest, HandsOutWorkAndOrdersTheFinalEvaluation) {
  Train();
  v1::WorkProgress done;
  int batches = 0;
  v1::GetWorkReply work = GetWork(ada_);
  while (work.state() == v1::GetWorkReply::UNIT) {
    batches += static_cast<int>(work.batches());
    done.set_unit(work.unit());
    done.set_batches_done(work.batches());
    work = GetWork(ada_, 0, done);
  }
  EXPECT_EQ(work.state(), v1::GetWorkReply::FINISHED);
  EXPECT_EQ(batches, 4);

  Sync();
  Sync(true, true);
  const v1::HeartbeatReply beat = Beat(ada_);
  ASSERT_TRUE(beat.evaluation_final());
  EXPECT_EQ(Beat(bob_).evaluation(), 0u);
  v1::ReportRequest report;
  *report.mutable_identity() = ada_;
  report.set_evaluation(beat.evaluation());
  report.mutable_result()->set_test_accuracy(0.75);
  report.set_weights_sha256(kHash);
  v1::ReportReply reply;
  EXPECT_EQ(Call(&Stub::Report, report, reply).error_message(),
            "versions: one for each of 1 shards, not 0");
  report.mutable_result()->add_versions(2);
  EXPECT_EQ(Call(&Stub::Report, report, reply).error_code(), StatusCode::INVALID_ARGUMENT);
  report.mutable_result()->set_versions(0, 0);
  ASSERT_TRUE(Call(&Stub::Report, report, reply).ok());

  const v1::RunStatus status = Status();
  EXPECT_EQ(status.phase(), v1::FINISHED);
  EXPECT_EQ(status.weights_sha256(), kHash);
  EXPECT_EQ(status.batches_done(), 4u);
  ASSERT_EQ(status.evaluations_size(), 1);
  EXPECT_DOUBLE_EQ(status.evaluations(0).test_accuracy(), 0.75);
  EXPECT_TRUE(status.evaluations(0).final());
  const auto tells = [](const v1::RunEvent& event) {
    return event.kind() == "evaluation" &&
           event.text().find("evaluation done worker=0 epoch=1 test_accuracy=0.75") == 0;
  };
  EXPECT_EQ(std::ranges::count_if(status.events(), tells), 1);

  ASSERT_TRUE(Leave(ada_).ok());
  ASSERT_TRUE(Leave(bob_).ok());
  EXPECT_FALSE(service_->ServersMayStop());
  Sync();
  Sync();
  EXPECT_TRUE(service_->ServersMayStop());
}

TEST_F(CoordinatorServiceTest, RefusesAHeartbeatThatNoWorkerSends) {
  Train();
  v1::HeartbeatRequest request;
  *request.mutable_identity() = ada_;
  request.mutable_nonfinite()->set_what(std::string(1 << 20, 'a'));
  v1::HeartbeatReply reply;

  EXPECT_EQ(AskOnce(&Stub::Heartbeat, request, reply).error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_FALSE(Status().workers(0).has_nonfinite());
}

TEST_F(CoordinatorServiceTest, TellsEachWorkerItsStepsWhereTheyFollowSpeeds) {
  RunSpec spec = Spec();
  spec.worker.algorithm = AlgorithmKind::kLocalSgd;
  spec.worker.parameters["steps"] = 500;
  spec.worker.steps_by_speed = true;
  Train(spec);
  const auto steps_of = [this](const v1::Identity& worker, double speed) {
    v1::HeartbeatRequest request;
    *request.mutable_identity() = worker;
    request.set_steps_per_second(speed);
    v1::HeartbeatReply reply;
    EXPECT_TRUE(AskOnce(&Stub::Heartbeat, request, reply).ok());
    return reply.steps();
  };
  EXPECT_EQ(steps_of(ada_, 0), 0u);
  EXPECT_EQ(steps_of(ada_, 10), 500u);
  EXPECT_EQ(steps_of(bob_, 2), 100u);

  v1::HeartbeatRequest odd;
  *odd.mutable_identity() = bob_;
  odd.set_steps_per_second(std::numeric_limits<double>::quiet_NaN());
  v1::HeartbeatReply reply;
  EXPECT_EQ(AskOnce(&Stub::Heartbeat, odd, reply).error_code(), StatusCode::INVALID_ARGUMENT);
}

TEST_F(CoordinatorServiceTest, AWorkerThatLeavesTellsWhatItHasDone) {
  Train();
  const v1::GetWorkReply work = GetWork(ada_);
  ASSERT_EQ(work.state(), v1::GetWorkReply::UNIT);
  v1::WorkProgress done;
  done.set_unit(work.unit());
  done.set_batches_done(work.batches());

  ASSERT_TRUE(Leave(ada_, done).ok());

  EXPECT_EQ(Status().batches_done(), work.batches());
  EXPECT_EQ(GetWork(bob_).first_batch(), work.batches());
}

TEST_F(CoordinatorServiceTest, AWaitingWorkerGetsTheUnitOfOneWhoseLeaseEnds) {
  Train();
  std::vector<v1::GetWorkReply> of_bob = {GetWork(bob_), GetWork(bob_)};
  std::vector<v1::GetWorkReply> of_ada = {GetWork(ada_), GetWork(ada_)};
  for (const v1::GetWorkReply& work : of_ada) ASSERT_EQ(work.state(), v1::GetWorkReply::UNIT);
  std::future<v1::GetWorkReply> answer = std::async(std::launch::async, [&] {
    v1::WorkProgress done;
    done.set_unit(of_ada[0].unit());
    done.set_batches_done(of_ada[0].batches());
    return GetWork(ada_, kLongWaitMs, done);
  });

  // Ada's heartbeats go on. Bob is silent for more than his lease, but the call's wait does not
  // expire.
  for (int second = 0; second < 6; ++second) {
    clock_.Advance(absl::Seconds(1));
    Beat(ada_);
  }
  while (Status().view() == 1) Beat(ada_);

  const v1::GetWorkReply reply = answer.get();
  EXPECT_EQ(reply.state(), v1::GetWorkReply::UNIT);
  EXPECT_EQ(reply.first_batch(), of_bob[0].first_batch());
  EXPECT_EQ(Status().workers(1).state(), "dead");
}

TEST_F(CoordinatorServiceTest, AServerLearnsOfNewOrdersWhileItsCallWaits) {
  Start();
  Sync();
  v1::SyncServerRequest request;
  request.set_orders_seen(Sync());
  request.set_wait_ms(kLongWaitMs);
  Register();
  std::future<v1::SyncServerReply> answer = std::async(std::launch::async, [&] {
    v1::SyncServerReply reply;
    EXPECT_TRUE(Sync(request, reply).ok());
    return reply;
  });

  Register();

  const v1::SyncServerReply reply = answer.get();
  EXPECT_EQ(reply.phase(), v1::INITIALIZING);
  EXPECT_EQ(reply.view().members_size(), 2);
}

TEST_F(CoordinatorServiceTest, AClientThatGivesUpLeavesNothingBehind) {
  Start();
  Sync();
  const v1::Identity ada = Register();
  v1::PrepareModelRequest request = Model(ada);
  request.set_wait_ms(kLongWaitMs);
  grpc::ClientContext context;
  std::future<grpc::Status> given_up = std::async(std::launch::async, [&] {
    v1::PrepareModelReply reply;
    return stub_->PrepareModel(&context, request, &reply);
  });
  context.TryCancel();
  EXPECT_EQ(given_up.get().error_code(), StatusCode::CANCELLED);

  Register();

  EXPECT_NE(Prepare(Model(ada)).state(), v1::PrepareModelReply::STATE_UNSPECIFIED);
}

TEST_F(CoordinatorServiceTest, StoppingAnswersCallsThatWait) {
  Start();
  Sync();
  v1::PrepareModelRequest request = Model(Register());
  request.set_wait_ms(kLongWaitMs);
  clock_.Advance(absl::Seconds(1));
  std::future<grpc::Status> answer = std::async(std::launch::async, [&] {
    v1::PrepareModelReply reply;
    return Call(&Stub::PrepareModel, request, reply);
  });
  // Wait until the call has arrived: it renews the lease, and then waits.
  while (Status().workers(0).lease_left_seconds() < 5) {
  }

  service_->Stop();

  EXPECT_EQ(answer.get().error_code(), StatusCode::UNAVAILABLE);
}

TEST_F(CoordinatorServiceTest, AWatcherSeesTheRunToItsEnd) {
  Train();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  v1::WatchStatusRequest request;
  request.set_interval_ms(3'600'000);
  const auto watch = stub_->WatchStatus(&context, request);
  v1::RunStatus status;
  ASSERT_TRUE(watch->Read(&status));
  EXPECT_EQ(status.phase(), v1::TRAINING);
  v1::LeaveRequest failed;
  *failed.mutable_identity() = ada_;
  failed.set_failure("out of memory");
  v1::LeaveReply reply;
  ASSERT_TRUE(Call(&Stub::Leave, failed, reply).ok());
  ASSERT_TRUE(Leave(bob_).ok());

  // No worker comes back in time. Time passes in small steps, since a long gap would be forgiven.
  while (Status().phase() != v1::FAILED) {
    clock_.Advance(absl::Seconds(1));
    Sync(/*initialized=*/true);
  }

  ASSERT_TRUE(watch->Read(&status));
  EXPECT_EQ(status.phase(), v1::FAILED);
  EXPECT_FALSE(watch->Read(&status));
  EXPECT_TRUE(watch->Finish().ok());
}

TEST_F(CoordinatorServiceTest, StoppingTellsWatchers) {
  Start();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  const auto watch = stub_->WatchStatus(&context, v1::WatchStatusRequest());
  v1::RunStatus status;
  ASSERT_TRUE(watch->Read(&status));

  service_->Stop();

  EXPECT_FALSE(watch->Read(&status));
  EXPECT_EQ(watch->Finish().error_code(), StatusCode::UNAVAILABLE);
}

}  // namespace

namespace {

TEST(CoordinatorWireTest, CarriesTheNewestPushOfAMemberThoughItWasDropped) {
  ConsistencySpec consistency = {.policy = ConsistencySpec::Policy::kAsync};
  consistency.max_staleness.action = StalenessGuardSpec::Action::kDrop;
  ShardMachineDriver driver(TestOptions(consistency));
  driver.Start(FoundingView(3));
  driver.Push(PushOf(0, 1, 0));
  ShardMachine::PushFacts stale = PushOf(1, 1, 0);
  stale.header.batches = {{41}};
  stale.header.clock = WorkerClock{7};
  ASSERT_EQ(driver.Push(stale).reply.outcome, PushOutcome::kDroppedLate);

  v1::SyncServerRequest wire;
  *wire.mutable_progress() = ProgressOf(driver.core());
  const ServerReport report = FromWire(wire);

  EXPECT_EQ(report.version, driver.core().published());
  ASSERT_EQ(report.pushed.size(), 1u) << "the others have pushed no mini-batch";
  EXPECT_EQ(report.pushed[0].worker, WorkerId{1});
  EXPECT_EQ(report.pushed[0].incarnation, Incarnation{2});
  EXPECT_EQ(report.pushed[0].batch_end, 42u);
  EXPECT_EQ(report.pushed[0].clock, WorkerClock{7});
}

}  // namespace

}  // namespace slipstream
