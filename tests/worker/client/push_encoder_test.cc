#include "worker/client/push_encoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <thread>
#include <vector>

#include "common/base/philox.h"
#include "common/wire/value_encoding.h"
#include "worker/client/gradient_feed.h"

namespace slipstream {
namespace {

constexpr size_t kValues = 3000;
constexpr size_t kChunk = 1024;

PushReply Reply(PushOutcome outcome, std::optional<PushOutcome> first = std::nullopt) {
  PushReply reply;
  reply.outcome = outcome;
  reply.first_outcome = first;
  return reply;
}

std::vector<float> RandomGradient(uint64_t seed) {
  RandomStream random(seed, 22);
  std::vector<float> values(kValues);
  for (float& value : values) value = random.Uniform(-1, 1);
  return values;
}

/// Sends a gradient from its last chunk to its first. Returns the values that arrive.
std::vector<float> Sent(PushEncoder& encoder, const std::vector<float>& gradient) {
  std::vector<float> sent(kValues);
  for (size_t end = kValues; end > 0;) {
    const size_t begin = (end - 1) / kChunk * kChunk;
    Decode(encoder.encoding(), {encoder.Encode(gradient, begin, end).bytes},
           std::span(sent).subspan(begin, end - begin));
    end = begin;
  }
  return sent;
}

/// Returns the largest error of the values sent, which should be the gradient plus the earlier
/// error.
double WorstError(const std::vector<float>& sent, const std::vector<float>& gradient,
                  const std::vector<float>& error) {
  double worst = 0;
  for (size_t i = 0; i < sent.size(); ++i) {
    worst = std::max(worst, std::abs(double{sent[i]} - double{gradient[i]} - double{error[i]}));
  }
  return worst;
}

/// Half a step of int8, for gradients of up to 1 plus their errors.
constexpr double kHalfStep = 0.5 / 127 * 1.01;

/// Returns whether the second push contains the error of the first, if `outcome` was the answer to
/// the first.
bool IsMadeUpFor(const PushReply& outcome) {
  PushEncoder encoder(Encoding::kInt8, kValues);
  const std::vector<float> first = RandomGradient(1);
  encoder.Begin();
  const std::vector<float> sent = Sent(encoder, first);
  encoder.OnOutcome(outcome);
  encoder.OnOutcome(outcome);  // The answer's weights broke off, so the push was sent again.
  std::vector<float> error(kValues);
  for (size_t i = 0; i < kValues; ++i) error[i] = first[i] - sent[i];

  const std::vector<float> second = RandomGradient(2);
  encoder.Begin();
  const std::vector<float> then = Sent(encoder, second);
  const bool with_error = WorstError(then, second, error) <= kHalfStep;
  const bool without = WorstError(then, second, std::vector<float>(kValues)) <= kHalfStep;
  EXPECT_NE(with_error, without);
  return with_error;
}

TEST(PushEncoderTest, MakesUpForWhatAGradientThatCountsHasLost) {
  EXPECT_TRUE(IsMadeUpFor(Reply(PushOutcome::kApplied)));
  EXPECT_TRUE(IsMadeUpFor(Reply(PushOutcome::kBuffered)));
  EXPECT_TRUE(IsMadeUpFor(Reply(PushOutcome::kDuplicate, PushOutcome::kApplied)));
  EXPECT_TRUE(IsMadeUpFor(Reply(PushOutcome::kDuplicate, PushOutcome::kBuffered)));
}

TEST(PushEncoderTest, ForgetsWhatAGradientThatDoesNotCountWouldHaveLost) {
  EXPECT_FALSE(IsMadeUpFor(Reply(PushOutcome::kDroppedLate)));
  EXPECT_FALSE(IsMadeUpFor(Reply(PushOutcome::kTooStale)));
  EXPECT_FALSE(IsMadeUpFor(Reply(PushOutcome::kDuplicate, PushOutcome::kDroppedLate)));
}

TEST(PushEncoderTest, ARepetitionHasTheSameBytesWhateverBecomesOfTheGradient) {
  for (const EncodingRow& row : kEncodingRows) {
    if (row.kind == Encoding::kFp32) continue;
    SCOPED_TRACE(row.name);
    PushEncoder encoder(row.kind, kValues);
    std::vector<float> gradient = RandomGradient(1);
    encoder.Begin();
    const std::vector<float> sent = Sent(encoder, gradient);
    std::ranges::fill(gradient, 5.0f);

    EXPECT_EQ(Sent(encoder, gradient), sent);
  }
}

TEST(PushEncoderTest, AGradientGivenUpHalfwayLeavesNothing) {
  PushEncoder encoder(Encoding::kInt8, kValues);
  encoder.Begin();
  const std::vector<float> first = RandomGradient(1);
  encoder.Encode(first, 2048, kValues);

  const std::vector<float> second = RandomGradient(2);
  encoder.Begin();

  EXPECT_LE(WorstError(Sent(encoder, second), second, std::vector<float>(kValues)), kHalfStep);
}

TEST(PushEncoderTest, WhatIsStillBeingSentStaysAsItIs) {
  PushEncoder encoder(Encoding::kBf16, kValues);
  encoder.Begin();
  const LentBytes held = encoder.Encode(RandomGradient(1), 0, kValues);
  const std::vector<std::byte> before(held.bytes.begin(), held.bytes.end());

  encoder.Begin();
  encoder.Encode(RandomGradient(2), 0, kValues);

  EXPECT_TRUE(std::ranges::equal(held.bytes, before));
}

TEST(PushEncoderTest, OfAClippedGradientAsMuchRemainsAsItIsClippedBy) {
  PushEncoder encoder(Encoding::kTopK, kValues);
  std::vector<float> exploded = RandomGradient(1);
  for (float& value : exploded) value *= 1e6f;
  encoder.Begin();
  Sent(encoder, exploded);
  encoder.OnOutcome(Reply(PushOutcome::kApplied), 1e-6f);

  encoder.Begin();
  const std::vector<float> later = Sent(encoder, std::vector<float>(kValues));

  EXPECT_GT(std::ranges::max(later), 0);
  EXPECT_LE(std::ranges::max(later), 1);
}

/// Error feedback: the sum of many gradients arrives with an error of at most half a step.
TEST(PushEncoderTest, ErrorsDoNotAddUp) {
  PushEncoder encoder(Encoding::kInt8, kValues);
  std::vector<double> lacking(kValues);
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<float> gradient = RandomGradient(seed);
    encoder.Begin();
    const std::vector<float> sent = Sent(encoder, gradient);
    encoder.OnOutcome(Reply(PushOutcome::kApplied));
    for (size_t i = 0; i < kValues; ++i) lacking[i] += double{gradient[i]} - double{sent[i]};
  }
  EXPECT_LE(std::ranges::max(lacking), 1.01 * kHalfStep);
  EXPECT_GE(std::ranges::min(lacking), -1.01 * kHalfStep);
}

/// Puts `value` in the place of the gradients of frozen tensors.
std::vector<float> WithFrozen(std::vector<float> gradient,
                              const std::vector<ParameterRange>& frozen, float value) {
  for (const ParameterRange& range : frozen) {
    std::ranges::fill(std::span(gradient).subspan(range.begin, range.size()), value);
  }
  return gradient;
}

/// Gradients of frozen tensors are a billion times as large as those of their neighbours.
TEST(PushEncoderTest, FrozenTensorsChangeNothingForOthersOfTheirBlocks) {
  const std::vector<ParameterRange> frozen = {{0, 200}, {1000, 1100}, {1500, 2100}, {2990, 3000}};
  for (const EncodingRow& row : kEncodingRows) {
    if (!row.feeds_error_back) continue;
    SCOPED_TRACE(row.name);
    PushEncoder encoder(row.kind, kValues, frozen);
    // Gradients of 0 are neutral by themselves, except where zeros take part in means.
    const bool needs_frozen = row.averages_zeros;
    PushEncoder reference(row.kind, kValues, needs_frozen ? frozen : std::vector<ParameterRange>());
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      std::vector<float> gradient = RandomGradient(seed);
      for (float& value : gradient) value *= 1e-3f;
      encoder.Begin();
      reference.Begin();
      const std::vector<float> sent = Sent(encoder, WithFrozen(gradient, frozen, 1e6f));
      const std::vector<float> expected = Sent(reference, WithFrozen(gradient, frozen, 0));
      encoder.OnOutcome(Reply(PushOutcome::kApplied), 0.5f);
      reference.OnOutcome(Reply(PushOutcome::kApplied), 0.5f);

      EXPECT_EQ(WithFrozen(sent, frozen, 0), WithFrozen(expected, frozen, 0)) << seed;
    }
    const std::vector<float> error(encoder.error().begin(), encoder.error().end());
    EXPECT_EQ(error, WithFrozen(error, frozen, 0)) << "nothing is owed to a frozen tensor";
  }
}

TEST(PushEncoderTest, FrozenValuesTakeNoPartInMeansOfOnebit) {
  constexpr size_t kFrozen = 200;
  constexpr size_t kLive = 56;
  PushEncoder encoder(Encoding::kOneBit, kFrozen + kLive, {{0, kFrozen}});
  PushEncoder alone(Encoding::kOneBit, kLive);
  std::vector<float> gradient = RandomGradient(1);
  gradient.resize(kFrozen + kLive);
  std::fill_n(gradient.begin(), kFrozen, -1e6f);
  std::vector<float> sent(gradient.size());
  std::vector<float> expected(kLive);

  Decode(Encoding::kOneBit, {encoder.Encode(gradient, 0, gradient.size()).bytes}, sent);
  Decode(Encoding::kOneBit, {alone.Encode(std::span(gradient).last(kLive), 0, kLive).bytes},
         expected);

  for (size_t i = 0; i < kLive; ++i) EXPECT_FLOAT_EQ(sent[kFrozen + i], expected[i]) << i;
}

TEST(PushEncoderTest, EncodingsWithoutBlocksSendFrozenValuesToo) {
  for (const EncodingRow& row : kEncodingRows) {
    if (row.kind == Encoding::kFp32 || row.feeds_error_back) continue;
    SCOPED_TRACE(row.name);
    const std::vector<float> gradient = RandomGradient(1);
    PushEncoder encoder(row.kind, kValues, {{0, 200}});
    PushEncoder reference(row.kind, kValues);
    encoder.Begin();
    reference.Begin();

    EXPECT_EQ(Sent(encoder, gradient), Sent(reference, gradient));
  }
}

/// Pushes equal gradients, each clipped by the factor of its number, and returns the largest
/// magnitude that is lacking of their sum, for each push.
double LackingOfEach(Encoding encoding, float (*clip_of)(int push)) {
  PushEncoder encoder(encoding, kValues);
  const std::vector<float> gradient = RandomGradient(3);
  std::vector<double> lacking(kValues);
  constexpr int kPushes = 1600;
  for (int push = 0; push < kPushes; ++push) {
    const float clip = clip_of(push);
    encoder.Begin();
    const std::vector<float> sent = Sent(encoder, gradient);
    encoder.OnOutcome(Reply(PushOutcome::kApplied), clip);
    for (size_t i = 0; i < kValues; ++i) {
      lacking[i] += double{clip} * (double{gradient[i]} - double{sent[i]});
    }
  }
  return std::max(std::ranges::max(lacking), -std::ranges::min(lacking)) / kPushes;
}

/// Later gradients bring what one has lost, however coarse the encoding is: of a sum of equal
/// gradients, whose values lie up to 1, a bounded part is lacking.
TEST(PushEncoderTest, WhatACoarseEncodingLosesComesLater) {
  for (const Encoding encoding : {Encoding::kOneBit, Encoding::kTwoBit, Encoding::kTopK}) {
    EXPECT_LT(LackingOfEach(encoding, [](int) { return 1.0f; }), 0.05) << RowOf(encoding).name;
  }
}

TEST(PushEncoderTest, WhatClippedGradientsLoseComesLaterToo) {
  const auto clip_of = [](int push) { return push % 3 == 0 ? 1.0f : 0.1f; };
  for (const Encoding encoding : {Encoding::kInt8, Encoding::kTwoBit, Encoding::kTopK}) {
    EXPECT_LT(LackingOfEach(encoding, clip_of), 0.1) << RowOf(encoding).name;
  }
}

}  // namespace

namespace {

TEST(GradientFeedTest, KnowsWhatIsFinalFromTheEnd) {
  GradientFeed feed(100);
  EXPECT_FALSE(feed.IsDecided(99));

  feed.OnGradientReady({60, 100});

  EXPECT_TRUE(feed.IsDecided(60));
  EXPECT_FALSE(feed.IsDecided(59));
  EXPECT_TRUE(feed.AwaitFinal(70));
}

TEST(GradientFeedTest, ASealMakesAllOfItFinal) {
  GradientFeed feed(100);
  feed.OnGradientReady({0, 100});
  EXPECT_FALSE(feed.is_over()) << "the step may still fail";
  EXPECT_EQ(feed.trailer(), PushTrailer());
  std::thread lane([&feed] { EXPECT_TRUE(feed.AwaitTrailer()); });

  feed.Seal({.loss = 0.5f, .clip = 0.25f});
  lane.join();

  EXPECT_TRUE(feed.AwaitFinal(0));
  EXPECT_FALSE(feed.is_aborted());
  EXPECT_EQ(feed.trailer().clip, 0.25f);
}

TEST(GradientFeedTest, AnAbortEndsEveryWait) {
  GradientFeed feed(100);
  feed.OnGradientReady({60, 100});
  std::thread last([&feed] { EXPECT_FALSE(feed.AwaitTrailer()); });
  std::thread middle([&feed] { EXPECT_FALSE(feed.AwaitFinal(10)); });

  feed.Abort();
  last.join();
  middle.join();

  EXPECT_FALSE(feed.AwaitFinal(60)) << "nothing more may leave";
  EXPECT_TRUE(feed.is_aborted());
}

TEST(GradientFeedDeathTest, RefusesRangesThatDoNotFollow) {
  GradientFeed feed(100);

  EXPECT_DEATH(feed.OnGradientReady({40, 90}), "");
}

}  // namespace

}  // namespace slipstream
