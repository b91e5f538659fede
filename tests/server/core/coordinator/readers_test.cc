#include "server/core/coordinator/readers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

// Tests of what the coordinator knows of a run's readers, by their reports.

namespace slipstream {
namespace {

using testing::ElementsAre;

constexpr absl::Duration kLease = absl::Seconds(5);
constexpr absl::Duration kMoment = absl::Milliseconds(1);

/// Returns the report of a reader that holds this version, or none.
ReaderReport ReportOf(uint64_t instance, std::optional<uint64_t> held = std::nullopt) {
  ReaderReport report = {.instance = instance, .host = "host", .name = "sampler"};
  if (held.has_value()) report.held = Version{*held};
  return report;
}

class ReadersTest : public testing::Test {
 protected:
  /// Takes a report that is right, and returns the reader's number.
  uint64_t Take(const ReaderReport& report) {
    const absl::StatusOr<uint64_t> number = readers_.OnReport(report, now_);
    EXPECT_TRUE(number.ok()) << number.status();
    return number.value_or(std::numeric_limits<uint64_t>::max());
  }

  void Publish(uint64_t version) { readers_.OnNewest(Version{version}, now_); }

  /// Lets time pass in which nothing is heard.
  void Pass(absl::Duration duration) {
    now_ += duration;
    readers_.Tick(now_);
  }

  const Readers::Reader& At(uint64_t number) const { return readers_.readers().at(number); }
  uint64_t LagOf(uint64_t number) const { return readers_.LagOf(At(number)); }
  bool IsListed(uint64_t number) const { return readers_.readers().contains(number); }

  absl::Time now_ = absl::UnixEpoch();
  Readers readers_{kLease};
};

TEST_F(ReadersTest, ReadersAreNumberedFromZeroAndKeepTheirNumbers) {
  EXPECT_EQ(Take(ReportOf(77)), 0u);
  EXPECT_EQ(Take(ReportOf(33)), 1u);

  EXPECT_EQ(Take(ReportOf(77, 4)), 0u);

  EXPECT_EQ(readers_.readers().size(), 2u);
  EXPECT_EQ(At(0).report.instance, 77u);
  EXPECT_EQ(At(0).report.held, Version{4}) << "the newest report counts";
  EXPECT_EQ(At(1).report.instance, 33u);
}

TEST_F(ReadersTest, TheLagIsTheNumberOfVersionsThatAreNewerThanTheOneHeld) {
  Take(ReportOf(1, 3));
  Take(ReportOf(2));
  Take(ReportOf(3, 9));
  EXPECT_EQ(LagOf(0), 0u);

  Publish(5);

  EXPECT_EQ(LagOf(0), 2u);
  EXPECT_EQ(LagOf(1), 0u) << "it holds none yet";
  EXPECT_EQ(LagOf(2), 0u) << "it holds one that the coordinator has not heard of";

  Publish(4);
  EXPECT_EQ(readers_.newest(), Version{5}) << "an older report comes late";
  EXPECT_EQ(LagOf(0), 2u);
  Take(ReportOf(1, 5));
  EXPECT_EQ(LagOf(0), 0u);
}

TEST_F(ReadersTest, WhatAReaderHasHeardOfCountsForItselfAlone) {
  ReaderReport report = ReportOf(1, 2);
  report.newest = Version{9};
  Take(report);
  Take(ReportOf(2, 2));

  EXPECT_EQ(LagOf(0), 7u);
  EXPECT_EQ(LagOf(1), 0u);
  EXPECT_EQ(At(1).behind_since, std::nullopt);
  EXPECT_EQ(readers_.newest(), Version{});
}

TEST_F(ReadersTest, AReaderIsBehindSinceTheFirstVersionThatIsNewerThanItsOwn) {
  Take(ReportOf(1, 3));
  Publish(3);
  EXPECT_EQ(At(0).behind_since, std::nullopt);
  now_ += absl::Seconds(1);
  const absl::Time first = now_;
  Publish(4);
  EXPECT_EQ(At(0).behind_since, first);

  now_ += absl::Seconds(1);
  Publish(5);
  EXPECT_EQ(At(0).behind_since, first);
  Take(ReportOf(1, 3));
  EXPECT_EQ(At(0).behind_since, first) << "it holds the same version";
}

TEST_F(ReadersTest, AReaderThatTakesTheNewestVersionIsNotBehindAnyMore) {
  Take(ReportOf(1, 3));
  Publish(4);
  now_ += absl::Seconds(1);
  Take(ReportOf(1, 4));
  EXPECT_EQ(At(0).behind_since, std::nullopt);

  now_ += absl::Seconds(1);
  Publish(5);

  EXPECT_EQ(At(0).behind_since, now_);
}

TEST_F(ReadersTest, AReaderThatTakesAVersionOfLateIsBehindForAShorterTime) {
  Take(ReportOf(1, 3));
  Publish(4);
  const absl::Time behind_the_fourth = now_;
  now_ += absl::Seconds(1);
  Publish(5);
  EXPECT_EQ(At(0).behind_since, behind_the_fourth);

  Take(ReportOf(1, 4));

  EXPECT_EQ(LagOf(0), 1u);
  EXPECT_EQ(At(0).behind_since, now_);
}

TEST_F(ReadersTest, AReaderThatComesWithAnOldVersionIsBehindFromThenOn) {
  Publish(8);
  now_ += absl::Seconds(1);

  Take(ReportOf(1, 3));

  EXPECT_EQ(LagOf(0), 5u);
  EXPECT_EQ(At(0).behind_since, now_);
}

TEST_F(ReadersTest, AReaderSilentForLongerThanItsLeaseIsListedButNotLive) {
  Take(ReportOf(1, 3));
  EXPECT_TRUE(At(0).is_live);
  Pass(kLease);
  EXPECT_TRUE(At(0).is_live);

  Pass(kMoment);

  EXPECT_FALSE(At(0).is_live);
  EXPECT_EQ(Take(ReportOf(1, 3)), 0u) << "it is known still";
  EXPECT_TRUE(At(0).is_live);
  Pass(kLease);
  EXPECT_TRUE(At(0).is_live);
}

TEST_F(ReadersTest, AReaderGoneForLongIsForgottenAndComesBackAsANewOne) {
  Take(ReportOf(1));
  Pass(absl::Seconds(1));
  Take(ReportOf(2));
  Pass(kLease + Readers::kGoneListed - absl::Seconds(1));
  EXPECT_TRUE(IsListed(0));

  Pass(kMoment);

  EXPECT_FALSE(IsListed(0));
  EXPECT_TRUE(IsListed(1)) << "it was heard later";
  EXPECT_EQ(Take(ReportOf(1)), 2u);
  EXPECT_EQ(Take(ReportOf(2)), 1u);
}

TEST_F(ReadersTest, AReaderThatLeavesIsNotListedAndComesBackAsANewOne) {
  Take(ReportOf(1));
  Take(ReportOf(2));
  ReaderReport report = ReportOf(1);
  report.leaves = true;

  EXPECT_EQ(Take(report), 0u);

  EXPECT_FALSE(IsListed(0));
  EXPECT_TRUE(IsListed(1));
  EXPECT_EQ(Take(ReportOf(1)), 2u);
}

TEST_F(ReadersTest, AReaderThatLeavesTwiceOrNeverCameIsNotListed) {
  ReaderReport report = ReportOf(1);
  report.leaves = true;
  EXPECT_TRUE(readers_.OnReport(report, now_).ok());
  EXPECT_TRUE(readers_.OnReport(report, now_).ok());

  EXPECT_TRUE(readers_.readers().empty());
}

TEST_F(ReadersTest, TooManyReadersAreRefusedUntilOneIsGone) {
  for (uint64_t instance = 1; instance <= Readers::kReadersMax; ++instance) {
    ASSERT_EQ(Take(ReportOf(instance)), instance - 1);
  }
  const uint64_t another = Readers::kReadersMax + 1;
  EXPECT_EQ(readers_.OnReport(ReportOf(another), now_).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(readers_.readers().size(), Readers::kReadersMax);
  EXPECT_EQ(Take(ReportOf(7)), 6u) << "who is there may go on";

  ReaderReport report = ReportOf(7);
  report.leaves = true;
  Take(report);

  EXPECT_EQ(Take(ReportOf(another)), Readers::kReadersMax);
}

TEST_F(ReadersTest, OneAddressLeavesPlacesToOthers) {
  for (uint64_t instance = 1; instance <= Readers::kReadersOfAddressMax; ++instance) {
    ReaderReport report = ReportOf(instance);
    report.address = "here";
    ASSERT_EQ(Take(report), instance - 1);
  }
  ReaderReport another = ReportOf(Readers::kReadersOfAddressMax + 1);
  another.address = "here";
  EXPECT_EQ(readers_.OnReport(another, now_).status(),
            absl::ResourceExhaustedError(
                "256 readers from this address are there already, which is the most"));
  another.address = "elsewhere";
  EXPECT_EQ(Take(another), Readers::kReadersOfAddressMax);
}

TEST_F(ReadersTest, TellsWhichAreFurthestBehind) {
  readers_.OnNewest(Version{10}, now_);
  for (uint64_t instance = 1; instance <= 5; ++instance) {
    ReaderReport report = ReportOf(instance);
    report.held = Version{instance};
    Take(report);
  }
  now_ += 2 * kLease;
  for (const uint64_t instance : {2, 3, 4, 5}) {
    ReaderReport report = ReportOf(instance);
    report.held = Version{instance};
    Take(report);
  }
  readers_.Tick(now_);

  EXPECT_THAT(readers_.MostBehind(3), ElementsAre(1, 2, 3)) << "the first, number 0, is gone";
  EXPECT_THAT(readers_.MostBehind(9), ElementsAre(0, 1, 2, 3, 4));
}

struct BadReport {
  std::string name;
  std::string field;
  std::function<void(ReaderReport&)> spoil;
};

class RefusedReaderReport : public testing::TestWithParam<BadReport> {};

TEST_P(RefusedReaderReport, NamesItsFieldAndChangesNothing) {
  Readers readers(kLease);
  const absl::Time begin = absl::UnixEpoch();
  ASSERT_TRUE(readers.OnReport(ReportOf(1, 3), begin).ok());
  ReaderReport report = ReportOf(1, 4);
  GetParam().spoil(report);

  const absl::Status status = readers.OnReport(report, begin + absl::Seconds(1)).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_EQ(status.message().find(GetParam().field + ":"), 0u) << status;
  ASSERT_EQ(readers.readers().size(), 1u);
  EXPECT_EQ(readers.readers().at(0).report.held, Version{3});
  EXPECT_EQ(readers.readers().at(0).last_heard, begin);
}

INSTANTIATE_TEST_SUITE_P(
    Table, RefusedReaderReport,
    testing::Values(
        BadReport{"NoInstance", "instance", [](ReaderReport& report) { report.instance = 0; }},
        BadReport{"HostWithSpace", "host", [](ReaderReport& report) { report.host = "my host"; }},
        BadReport{"HostWithControlCharacter", "host",
                  [](ReaderReport& report) { report.host = "host\x7f"; }},
        BadReport{"HostTooLong", "host",
                  [](ReaderReport& report) {
                    report.host = std::string(Readers::kTextBytesMax + 1, 'h');
                  }},
        BadReport{"NameOfTwoLines", "name", [](ReaderReport& report) { report.name = "a\nb"; }},
        BadReport{"NameBeyondAscii", "name",
                  [](ReaderReport& report) { report.name = "l\xc3\xa4ufer"; }},
        BadReport{"NameWithZero", "name",
                  [](ReaderReport& report) { report.name = std::string("a\0b", 3); }},
        BadReport{"NameTooLong", "name",
                  [](ReaderReport& report) {
                    report.name = std::string(Readers::kTextBytesMax + 1, 'n');
                  }},
        BadReport{"RateNegative", "bytes_per_second",
                  [](ReaderReport& report) { report.bytes_per_second = -1; }},
        BadReport{"RateInfinite", "bytes_per_second",
                  [](ReaderReport& report) {
                    report.bytes_per_second = std::numeric_limits<double>::infinity();
                  }},
        BadReport{"RateNotANumber", "bytes_per_second",
                  [](ReaderReport& report) {
                    report.bytes_per_second = std::numeric_limits<double>::quiet_NaN();
                  }}),
    [](const auto& tested) { return tested.param.name; });

TEST_F(ReadersTest, TextsMayBeAsLongAsTheBound) {
  ReaderReport report = ReportOf(1);
  report.host = std::string(Readers::kTextBytesMax, '~');
  report.name = std::string(Readers::kTextBytesMax, '!');

  EXPECT_EQ(Take(report), 0u);
}

TEST_F(ReadersTest, TimeInWhichNobodyCouldBeHeardIsNoSilence) {
  Take(ReportOf(1));
  now_ += kLease;
  constexpr absl::Duration kGap = absl::Minutes(10);
  readers_.Forgive(kGap);

  Pass(kGap);
  EXPECT_TRUE(At(0).is_live);

  Pass(kMoment);
  EXPECT_FALSE(At(0).is_live) << "the lease is over but for the gap";
}

}  // namespace
}  // namespace slipstream
