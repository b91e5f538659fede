#include "deploy/psctl/run/program_locations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace slipstream {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ProgramLocationsTest, LooksBesideItselfThenInTheOutputTreeThenInRunfiles) {
  EXPECT_THAT(CandidatePaths("ps_server", "server", "/out/bin/deploy/psctl/psctl", ""),
              ElementsAre("/out/bin/deploy/psctl/ps_server", "/out/bin/server/ps_server",
                          "/out/bin/deploy/psctl/psctl.runfiles/slipstream/server/ps_server"));
}

TEST(ProgramLocationsTest, LooksNowhereElseThanInAGivenFolder) {
  EXPECT_THAT(CandidatePaths("ps_worker", "worker", "/usr/bin/psctl", "/opt/slipstream"),
              ElementsAre("/opt/slipstream/ps_worker"));
}

TEST(ProgramLocationsTest, SaysWhereItLooked) {
  const auto programs = FindPrograms("/no/such/folder");

  ASSERT_FALSE(programs.ok());
  EXPECT_THAT(std::string(programs.status().message()),
              HasSubstr("ps_server; tried\n  /no/such/folder/ps_server\n"));
}

}  // namespace
}  // namespace slipstream
