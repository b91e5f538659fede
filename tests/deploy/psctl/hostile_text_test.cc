// Tests that texts of peers, whichever way psctl prints them, cannot move the cursor.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "deploy/psctl/complaint.h"
#include "deploy/psctl/run/progress_printer.h"
#include "deploy/psctl/status/screen.h"

namespace slipstream {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kHostile[] = "shard 1 at \x1b[2J:70\u009B1A";

std::string PrintedToStderr(const std::function<void()>& print) {
  testing::internal::CaptureStderr();
  print();
  return testing::internal::GetCapturedStderr();
}

void ExpectHarmless(const std::string& text) {
  EXPECT_THAT(text, HasSubstr("shard 1 at \uFFFD[2J:70\uFFFD1A"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("\u009B")));
}

TEST(HostileTextTest, AnErrorIsHarmless) {
  ExpectHarmless(PrintedToStderr([] { EndWith(absl::UnavailableError(kHostile)); }));
}

TEST(HostileTextTest, AnErrorOfSeveralLinesKeepsThem) {
  EXPECT_EQ(PrintedToStderr([] { EndWith(absl::UnavailableError("a\nb")); }),
            "psctl: error: a\nb\n");
}

TEST(HostileTextTest, ANoteOfARunIsHarmless) {
  ExpectHarmless(PrintedToStderr([] { ProgressPrinter(LogSpec::Format::kText).Note(kHostile); }));
}

TEST(HostileTextTest, NotesAndPagesOfAStatusAreHarmless) {
  StatusScreen screen;
  ExpectHarmless(PrintedToStderr([&] { screen.Note(kHostile); }));
  testing::internal::CaptureStdout();
  screen.Show({{.text = kHostile, .style = LineStyle::kAlarm}});
  ExpectHarmless(testing::internal::GetCapturedStdout());
}

}  // namespace
}  // namespace slipstream
