#include "common/config/unexpected_arguments.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace slipstream {
namespace {

using Words = std::vector<std::string>;

std::string Explained(const Words& unexpected, const Words& all,
                      TakesSettings takes = TakesSettings::kThisProgram) {
  return ExplainUnexpected(unexpected, all, takes);
}

TEST(UnexpectedArgumentsTest, TellsThemInTheirOrderAndTheSettingThatWasMeant) {
  EXPECT_EQ(Explained({"--epochs", "3"}, {"run", "run.yaml", "--epochs", "3"}),
            "unexpected arguments: --epochs 3; did you mean --set training.epochs=3?");
  EXPECT_EQ(Explained({"--batch-size=8"}, {"run", "run.yaml", "--batch-size=8"}),
            "unexpected argument: --batch-size=8; did you mean --set training.batch_size=8?");
  EXPECT_EQ(Explained({"--training.epochs", "3"}, {"--training.epochs", "3"}),
            "unexpected arguments: --training.epochs 3; did you mean --set training.epochs=3?");
}

TEST(UnexpectedArgumentsTest, TakesTheWordBehindTheFlagForItsValue) {
  EXPECT_EQ(Explained({"--epochs", "run.yaml"}, {"run", "--epochs", "3", "run.yaml"}),
            "unexpected arguments: --epochs run.yaml; did you mean --set training.epochs=3?");
  EXPECT_EQ(Explained({"--epochs"}, {"run", "run.yaml", "--epochs"}),
            "unexpected argument: --epochs; did you mean --set training.epochs=VALUE?");
}

TEST(UnexpectedArgumentsTest, SaysWhoTakesTheSettingsOfARun) {
  EXPECT_EQ(Explained({"--epochs", "3"}, {"--epochs", "3"}, TakesSettings::kOthers),
            "unexpected arguments: --epochs 3; it is a setting of the run: --set "
            "training.epochs=3 of ps_server or psctl run");
}

TEST(UnexpectedArgumentsTest, GuessesNothingWhereNoSettingIsCalledSo) {
  EXPECT_EQ(Explained({"--flyy", "3"}, {"--flyy", "3"}), "unexpected arguments: --flyy 3");
  EXPECT_EQ(Explained({"b"}, {"run", "a", "b"}), "unexpected argument: b");
}

}  // namespace
}  // namespace slipstream
