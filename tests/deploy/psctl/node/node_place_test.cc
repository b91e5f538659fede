#include "deploy/psctl/node/node_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace slipstream {
namespace {

using testing::HasSubstr;

using Environment = std::map<std::string, std::string>;

std::string Refusal(const Environment& environment, const PlaceFlags& flags = {}) {
  const absl::StatusOr<NodePlace> place = FindNodePlace(environment, flags);
  return place.ok() ? "none" : std::string(place.status().message());
}

const Environment kSlurm = {
    {"SLURM_PROCID", "2"}, {"SLURM_NTASKS", "3"}, {"SLURM_STEP_ID", "0"}, {"SLURM_JOB_ID", "41"}};

TEST(NodePlaceTest, SlurmTellsPlaceJobAndAttempt) {
  const NodePlace first = {.rank = 2, .size = 3, .source = "Slurm", .job = "41", .attempt = "0"};
  EXPECT_EQ(*FindNodePlace(kSlurm, {}), first);

  Environment requeued = kSlurm;
  requeued["SLURM_RESTART_COUNT"] = "2";
  EXPECT_EQ(FindNodePlace(requeued, {})->attempt, "2");
  requeued["SLURM_STEP_ID"] = "1";
  EXPECT_EQ(FindNodePlace(requeued, {})->attempt, "2.1") << "a second srun of the job";
}

TEST(NodePlaceTest, ABatchScriptIsNoNode) {
  Environment batch = kSlurm;
  batch.erase("SLURM_STEP_ID");

  EXPECT_THAT(Refusal(batch), HasSubstr("start psctl node by srun"));
}

TEST(NodePlaceTest, TheInnermostLauncherCounts) {
  Environment inside = kSlurm;
  inside["OMPI_COMM_WORLD_RANK"] = "4";
  inside["OMPI_COMM_WORLD_SIZE"] = "6";
  inside["PMIX_NAMESPACE"] = "prterun-n1/77@1";

  const auto mpi = FindNodePlace(inside, {});
  ASSERT_TRUE(mpi.ok()) << mpi.status();
  EXPECT_EQ(mpi->source, "Open MPI");
  EXPECT_EQ(mpi->rank, 4u);
  EXPECT_EQ(mpi->size, 6u);
  EXPECT_EQ(mpi->job, "41");
  EXPECT_EQ(mpi->attempt, "prterun-n1-77-1") << "a part of a file's name";

  inside["RANK"] = "1";
  inside["WORLD_SIZE"] = "2";
  EXPECT_EQ(FindNodePlace(inside, {})->source, "Open MPI") << "RANK alone may be anything";
  inside["MASTER_ADDR"] = "n1";
  EXPECT_EQ(FindNodePlace(inside, {})->source, "torchrun");
}

TEST(NodePlaceTest, PmiTellsThePlace) {
  EXPECT_EQ(FindNodePlace({{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}}, {})->rank, 1u);
}

TEST(NodePlaceTest, KubernetesNeedsToBeToldHowManyThereAre) {
  const Environment pod = {{"JOB_COMPLETION_INDEX", "1"}};

  EXPECT_THAT(Refusal(pod), HasSubstr("(JOB_COMPLETION_INDEX), and not how many there are"));
  const auto place = FindNodePlace(pod, {.size = 3});
  ASSERT_TRUE(place.ok());
  EXPECT_EQ(place->rank, 1u);
  EXPECT_EQ(place->size, 3u);
}

TEST(NodePlaceTest, FlagsComeFirst) {
  const NodePlace place = {.rank = 0, .size = 2, .source = "--rank and --size"};
  EXPECT_EQ(*FindNodePlace(kSlurm, {.rank = 0, .size = 2}), place);
  EXPECT_EQ(FindNodePlace(kSlurm, {.rank = 1})->rank, 1u);
  EXPECT_THAT(Refusal({}, {.rank = 1}), HasSubstr("nothing how many there are"));
  EXPECT_THAT(Refusal({}, {.size = 2}), HasSubstr("nothing which one this is"));
}

TEST(NodePlaceTest, FlagsTellTheAttemptOrSlurmDoes) {
  Environment requeued = kSlurm;
  requeued["SLURM_RESTART_COUNT"] = "2";
  EXPECT_EQ(FindNodePlace(requeued, {.rank = 0, .size = 2})->attempt, "2");
  EXPECT_EQ(FindNodePlace(requeued, {.rank = 0, .size = 2, .attempt = "b/7"})->attempt, "b-7");
  EXPECT_EQ(FindNodePlace(requeued, {.attempt = "7"})->attempt, "7");
}

TEST(NodePlaceTest, TorchrunWithoutANameHasNone) {
  EXPECT_EQ(FindNodePlace({{"RANK", "0"},
                           {"WORLD_SIZE", "2"},
                           {"MASTER_ADDR", "n1"},
                           {"TORCHELASTIC_RUN_ID", "none"}},
                          {})
                ->job,
            "");
}

TEST(NodePlaceTest, NamesWhatIsMissingOrContradictory) {
  EXPECT_THAT(Refusal({}), HasSubstr("nothing says which node this is: start psctl node by srun"));
  EXPECT_THAT(Refusal({{"PMI_RANK", "1"}}), HasSubstr("PMI_SIZE is missing"));
  EXPECT_THAT(Refusal({{"PMI_RANK", "x"}, {"PMI_SIZE", "4"}}),
              HasSubstr("PMI_RANK=x is no number"));
  EXPECT_THAT(Refusal({{"PMI_RANK", "4"}, {"PMI_SIZE", "4"}}),
              HasSubstr("PMI says that this is node 4 of 4; nodes count from 0"));
  EXPECT_THAT(Refusal({{"PMI_RANK", "0"}, {"PMI_SIZE", "0"}}), HasSubstr("node 0 of 0"));
}

}  // namespace
}  // namespace slipstream
