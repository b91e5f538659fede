#include "server/storage/checkpoint_manifest.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>

namespace slipstream {
namespace {

CheckpointManifest Example() {
  return {.format = 5,
          .program = "0.1.0",
          .saved_at = absl::FromUnixSeconds(1'800'000'000),
          .facts = {.run = 0xab,
                    .shard = ShardId{1},
                    .range = {16, 26},
                    .saved = {.generation = Generation{2}, .version = Version{1200}, .stage = 1}},
          .arrays = {{"weights", 10}, {"state0", 10}, {"state1", 5}},
          .files = {{"weights.safetensors", 240, {{1, 2}}},
                    {"arrays.bin", 60, {{3, 4}}},
                    {"state.bin", 1'048'577, {{5, 6}, {7, 8}}}}};
}

std::string Body() {
  const std::string text = EncodeManifest(Example());
  return text.substr(0, text.rfind("checksum "));
}

TEST(CheckpointManifestTest, IsTextThatPeopleCanRead) {
  EXPECT_EQ(Body(),
            "slipstream checkpoint\n"
            "format 5\n"
            "program 0.1.0\n"
            "saved 2027-01-15T08:00:00Z\n"
            "run 00000000000000ab\n"
            "shard 1\n"
            "range 16:26\n"
            "generation 2\n"
            "version 1200\n"
            "stage 1\n"
            "array 10 weights\n"
            "array 10 state0\n"
            "array 5 state1\n"
            "file 240 weights.safetensors\n"
            "00000000000000010000000000000002\n"
            "file 60 arrays.bin\n"
            "00000000000000030000000000000004\n"
            "file 1048577 state.bin\n"
            "00000000000000050000000000000006\n"
            "00000000000000070000000000000008\n");
}

TEST(CheckpointManifestTest, IsReadAsItWasWritten) {
  EXPECT_EQ(ParseManifest(EncodeManifest(Example())).value(), Example());
}

TEST(CheckpointManifestTest, NamesTheSegmentOfALogIfThereIsOne) {
  CheckpointManifest manifest = Example();
  manifest.facts.log = 7;

  const std::string text = EncodeManifest(manifest);

  EXPECT_NE(text.find("\nstage 1\nlog 7\narray 10 weights\n"), text.npos);
  EXPECT_EQ(ParseManifest(text).value(), manifest);
}

TEST(CheckpointManifestTest, RefusesALaterFormatThatHasOtherLines) {
  std::string body = Body();
  body.replace(body.find("format 5\nprogram 0.1.0"), 22, "format 6\nprogram 9.0.0");
  EXPECT_EQ(ParseManifest(WithChecksum(body)).value().format, 6u);

  body.replace(body.find("\ngeneration"), 1, "\nmoon full\n");
  const absl::Status refused = ParseManifest(WithChecksum(body)).status();

  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused.message(),
            "slipstream 9.0.0 has written it, in format 6, and this is 0.1.0, which reads formats "
            "4 to 5; use that release, or a later one");
}

TEST(CheckpointManifestTest, RefusesFactsThatDoNotAgree) {
  const std::pair<const char*, const char*> changes[] = {
      {"range 16:26", "range 26:16"},
      {"range 16:26", "range 16:27"},
      {"array 10 weights", "array 9 weights"},
      {"array 5 state1", "array 6 state1"},
      {"file 60", "file 64"},
      {"file 60 arrays.bin", "file 60 /etc/passwd"},
      {"file 240", "file 39"},
      {"shard 1", "shard 4294967297"},
      {"shard 1", "shard 01"},
      {"generation 2", "generation -2"},
      {"generation 2", "generation 2 "},
      {"stage 1\n", ""},
      {"stage 1\n", "stage 1\nlog 0\n"},
      {"file 240", "file 18446744073709551615"},
      {"2027-01-15T08:00:00Z", "today"}};
  for (const auto& [from, to] : changes) {
    SCOPED_TRACE(to);
    std::string body = Body();
    body.replace(body.find(from), std::string(from).size(), to);

    EXPECT_EQ(ParseManifest(WithChecksum(body)).status().code(), absl::StatusCode::kDataLoss);
  }
}

TEST(CheckpointManifestTest, NoTextWithARightChecksumIsReadAsAnother) {
  const std::string sound = Body();
  for (uint64_t seed = 0; seed < 20'000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    std::string body = sound;
    body[random() % body.size()] = static_cast<char>(random());
    if (random() % 4 == 0) body.resize(random() % body.size());
    const std::string text = WithChecksum(body);

    const absl::StatusOr<CheckpointManifest> manifest = ParseManifest(text);

    if (manifest.ok()) {
      ASSERT_EQ(EncodeManifest(*manifest), text);
    }
  }
}

}  // namespace
}  // namespace slipstream
