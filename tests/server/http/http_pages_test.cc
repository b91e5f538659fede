#include "server/http/http_pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "server/listen/audit_log.h"
#include "tests/support/credentials.h"

namespace slipstream {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

ServerFacts Training() {
  ServerFacts facts = {.run = 0xC0FFEE, .phase = Phase::kTraining};
  v1::ShardStatus shard;
  shard.set_version(12);
  facts.shard = std::make_shared<const v1::ShardStatus>(shard);
  return facts;
}

HttpPages::Options OptionsFor(const ServerFacts& facts) {
  return {.run_name = "mnist",
          .facts = [facts] { return facts; },
          .coordinator = "server-0:7070",
          .now = [] { return absl::UnixEpoch(); }};
}

TEST(ReadinessTest, WorkersMayComeOnceTheServersAreThere) {
  EXPECT_FALSE(ReadinessOf({}).is_ready);
  EXPECT_FALSE(ReadinessOf({.run = 1, .phase = Phase::kWaitingForServers}).is_ready);
  EXPECT_TRUE(ReadinessOf({.run = 1, .phase = Phase::kWaitingForWorkers}).is_ready);
  EXPECT_TRUE(ReadinessOf({.run = 1, .phase = Phase::kTraining}).is_ready);
  EXPECT_TRUE(ReadinessOf({.run = 1, .phase = Phase::kFinished}).is_ready);
}

TEST(ReadinessTest, SaysWhatIsWrong) {
  const Readiness lost = ReadinessOf({.lost_because = "connection refused"});
  EXPECT_THAT(lost.lines, HasSubstr("[-]coordinator: connection refused\n"));
  const Readiness failed =
      ReadinessOf({.run = 1, .phase = Phase::kFailed, .failure = "no workers\n[+]forged"});
  EXPECT_FALSE(failed.is_ready);
  EXPECT_THAT(failed.lines, HasSubstr("[+]coordinator\n"));
  EXPECT_THAT(failed.lines, HasSubstr("[-]run: it has failed: no workers"));
  EXPECT_THAT(failed.lines, Not(HasSubstr("\n[+]forged")));
  EXPECT_FALSE(ReadinessOf({.run = 1, .phase = Phase::kTraining, .is_draining = true}).is_ready);
}

TEST(ReadinessTest, ARunGoesOnWhileItsCoordinatorIsAway) {
  EXPECT_TRUE(ReadinessOf({.run = 1, .phase = Phase::kTraining, .lost_because = "gone"}).is_ready);
}

TEST(HttpPagesTest, ProbesHearWhetherTheServerIsReady) {
  HttpPages pages(OptionsFor({}));
  EXPECT_EQ(pages.Answer({.path = "/livez"}).status, 200);
  EXPECT_EQ(pages.Answer({.path = "/readyz"}).status, 503);
  EXPECT_THAT(pages.Answer({.path = "/readyz", .is_verbose = true}).text,
              HasSubstr("[-]coordinator: it has not answered yet"));
  EXPECT_EQ(HttpPages(OptionsFor(Training())).Answer({.path = "/readyz"}).status, 200);
}

TEST(HttpPagesTest, ServersHaveTheirOwnFiguresAndTheCoordinatorThoseOfTheRun) {
  HttpPages::Options options = OptionsFor(Training());
  HttpPages without(options);
  const HttpPort::Answer own = without.Answer({.path = "/metrics"});
  EXPECT_THAT(own.type, HasSubstr("version=0.0.4"));
  EXPECT_THAT(own.text, HasSubstr("slipstream_shard_version{run=\"mnist\","
                                  "run_id=\"0000000000c0ffee\",shard=\"0\"} 12\n"));
  EXPECT_THAT(own.text, Not(HasSubstr("slipstream_run_epoch")));
  const HttpPort::Answer elsewhere = without.Answer({.path = "/status.json"});
  EXPECT_EQ(elsewhere.status, 404);
  EXPECT_THAT(elsewhere.text, HasSubstr("server-0:7070"));

  options.status = [] {
    v1::RunStatus status;
    status.set_epochs(3);
    return status;
  };
  HttpPages with(options);
  EXPECT_THAT(with.Answer({.path = "/metrics"}).text, HasSubstr("slipstream_run_epoch{"));
  EXPECT_EQ(nlohmann::json::parse(with.Answer({.path = "/status.json"}).text)["epochs"], 3);
}

TEST(HttpPagesTest, TheRunHasAPageWhereTheCoordinatorIs) {
  HttpPages::Options options = OptionsFor(Training());
  HttpPages without(options);
  EXPECT_THAT(without.Answer({.path = "/"}).text,
              HasSubstr("psctl status --coordinator server-0:7070"));
  EXPECT_EQ(without.Answer({.path = "/status/stream"}).status, 404);

  options.status = [] { return v1::RunStatus(); };
  HttpPages with(options);
  const HttpPort::Answer page = with.Answer({.path = "/"});
  EXPECT_THAT(page.type, StartsWith("text/html"));
  EXPECT_THAT(page.text, StartsWith("<!doctype html>"));
  EXPECT_THAT(page.text, HasSubstr("Chart.js"));  // Its licence asks to be named.
  EXPECT_THAT(page.policy, HasSubstr("default-src 'none'; script-src 'sha256-"));
  EXPECT_THAT(page.policy, Not(HasSubstr("unsafe")));
  EXPECT_THAT(with.Answer({.path = "/livez"}).policy, HasSubstr("default-src 'none'"));
}

TEST(HttpPagesTest, AStreamSendsTheStatusAndItsAlarmsMadeOnceForAll) {
  int made = 0;
  HttpPages::Options options = OptionsFor(Training());
  options.status = [&made] {
    ++made;
    v1::RunStatus status;
    status.set_phase(v1::FAILED);
    status.set_failure("no\nworkers");
    return status;
  };
  HttpPages pages(options);
  const HttpPort::Answer first = pages.Answer({.path = "/status/stream"});
  const HttpPort::Answer second = pages.Answer({.path = "/status/stream"});
  ASSERT_TRUE(first.event != nullptr && second.event != nullptr);
  const std::string event = first.event();
  EXPECT_EQ(second.event(), event);
  EXPECT_EQ(made, 1);
  EXPECT_THAT(event, MatchesRegex("event: alarms\ndata: [^\n]*\n\ndata: [^\n]*\n\n"));
  EXPECT_THAT(event, StartsWith("event: alarms\ndata: [{\"level\":\"alarm\",\"text\":"));
  const std::string status = event.substr(event.find("\n\ndata: ") + 8);
  EXPECT_EQ(nlohmann::json::parse(status)["failure"], "no\nworkers");
}

TEST(HttpPagesTest, HoweverManyAskTheFiguresAreMadeOnce) {
  int made = 0;
  HttpPages::Options options = OptionsFor(Training());
  absl::Time now = absl::UnixEpoch();
  options.now = [&now] { return now; };
  options.status = [&made] {
    ++made;
    return v1::RunStatus();
  };
  HttpPages pages(options);
  for (int i = 0; i < 100; ++i) pages.Answer({.path = "/metrics"});
  EXPECT_EQ(made, 1);
  now += 2 * options.age_max;
  pages.Answer({.path = "/metrics"});
  EXPECT_EQ(made, 2);
}

TEST(HttpPagesTest, WhoScrapesHasYetToSeeTheEndOfTheRun) {
  HttpPages::Options options = OptionsFor(Training());
  absl::Time now = absl::UnixEpoch();
  options.now = [&now] { return now; };
  HttpPages unseen(options);
  EXPECT_FALSE(unseen.AwaitsLastScrape());

  HttpPages scraped(options);
  scraped.Answer({.path = "/metrics"});
  now += absl::Seconds(5);
  EXPECT_TRUE(scraped.AwaitsLastScrape());
  now += absl::Seconds(1);
  scraped.Answer({.path = "/metrics"});
  EXPECT_FALSE(scraped.AwaitsLastScrape());

  HttpPages long_ago(options);
  long_ago.Answer({.path = "/metrics"});
  now += absl::Minutes(2);
  EXPECT_FALSE(long_ago.AwaitsLastScrape());
}

TEST(HttpPagesTest, APageOfElsewhereDoesNotReadAPortOfThisMachine) {
  HttpPages::Options options = OptionsFor(Training());
  options.is_loopback_only = true;
  HttpPages pages(options);
  for (const char* host : {"localhost:9464", "127.0.0.1:9464", "[::1]:9464", "localhost", ""}) {
    EXPECT_EQ(pages.Answer({.path = "/metrics", .host = host}).status, 200) << host;
  }
  for (const char* host : {"evil.example:9464", "127.0.0.1.evil.example", "x", "::1"}) {
    EXPECT_EQ(pages.Answer({.path = "/metrics", .host = host}).status, 421) << host;
  }
}

TEST(HttpPagesTest, WhoMayCallGetStatusMayRead) {
  const TestAuthority authority;
  AuditLog audit;
  Access access("mnist", authority.Write("token", "secret-token-0123456789abcdef\n"), audit);
  HttpPages::Options options = OptionsFor(Training());
  options.access = &access;
  HttpPages pages(options);

  EXPECT_EQ(pages.Answer({.path = "/readyz"}).status, 200);
  EXPECT_EQ(pages.Answer({.path = "/readyz", .is_verbose = true}).status, 401);
  EXPECT_EQ(pages.Answer({.path = "/metrics"}).status, 401);
  EXPECT_EQ(pages.Answer({.path = "/metrics", .authorization = "Bearer wrong"}).status, 401);
  EXPECT_EQ(
      pages.Answer({.path = "/metrics", .authorization = "Bearer secret-token-0123456789abcdef"})
          .status,
      200);
  EXPECT_EQ(pages.Answer({.path = "/metrics", .uris = {"slipstream://run/mnist/viewer"}}).status,
            200);
  EXPECT_EQ(pages.Answer({.path = "/metrics", .uris = {"slipstream://run/other/viewer"}}).status,
            403);
  EXPECT_EQ(audit.refusals(), 4u);
}

}  // namespace
}  // namespace slipstream
