#include "server/storage/buffer_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "common/local/shared_values.h"

namespace slipstream {
namespace {

TEST(FloatBufferTest, IsZeroAtFirst) {
  for (size_t values : {size_t{0}, size_t{1}, size_t{1000}, size_t{3} << 20}) {
    SCOPED_TRACE(values);
    const auto buffer = FloatBuffer::TryMake(values);

    ASSERT_NE(buffer, nullptr);
    EXPECT_EQ(buffer->values().size(), values);
    EXPECT_TRUE(std::ranges::all_of(buffer->values(), [](float value) { return value == 0; }));
  }
}

TEST(FloatBufferTest, TooLargeABufferIsNoneInsteadOfAnEnd) {
  constexpr size_t kMoreThanThereIs = std::numeric_limits<size_t>::max() / 8;

  EXPECT_EQ(FloatBuffer::TryMake(kMoreThanThereIs), nullptr);
  EXPECT_FALSE(BufferPool(kMoreThanThereIs).Reserve(1));
  EXPECT_EQ(BufferPool(kMoreThanThereIs).TryTake(), nullptr);
}

TEST(BufferPoolTest, ABufferThatComesBackIsUsedAgain) {
  BufferPool pool(10);
  ASSERT_TRUE(pool.Reserve(1));
  const float* const first = pool.Take()->values().data();

  EXPECT_EQ(pool.live(), 0u);
  EXPECT_EQ(pool.Take()->values().data(), first);
}

TEST(BufferPoolTest, KeepsAsManyIdleBuffersAsItIsAskedFor) {
  for (const size_t more : {size_t{0}, size_t{3}}) {
    BufferPool pool(10);
    pool.KeepIdle(more);
    {
      std::vector<std::shared_ptr<FloatBuffer>> out;
      for (size_t i = 0; i < 2 * BufferPool::kIdleMax; ++i) {
        out.push_back(pool.TakeAtOnce());
        out.back()->values()[0] = 7;  // A buffer that is made is zero.
      }
    }
    std::vector<std::shared_ptr<FloatBuffer>> again;
    size_t reused = 0;
    for (size_t i = 0; i < 2 * BufferPool::kIdleMax; ++i) {
      again.push_back(pool.TakeAtOnce());
      reused += again.back()->values()[0] == 7 ? 1 : 0;
    }
    EXPECT_EQ(reused, BufferPool::kIdleMax + more);
  }
}

TEST(BufferPoolTest, CountsWhatIsOutAndOutlivesItsOwner) {
  std::optional<BufferPool> pool(10);
  const auto one = pool->Take();
  const auto two = pool->Take();
  EXPECT_EQ(pool->live(), 2u);

  pool.reset();

  one->values()[9] = 1;  // The buffer is still valid.
  EXPECT_EQ(one->values()[9], 1);
}

TEST(BufferPoolTest, SharedBuffersAreTakenOnceAskedForAndSayWhenTheyAreWrittenAnew) {
  BufferPool pool(10);
  ASSERT_TRUE(pool.Reserve(2));
  auto before = pool.Take();
  EXPECT_EQ(before->shared(), nullptr);

  pool.Share();
  before.reset();  // Not shared, so it is not reused.

  auto shared = pool.Take();
  ASSERT_NE(shared->shared(), nullptr);
  shared->values()[9] = 1.5f;
  const SharedBuffer& buffer = *shared->shared();
  const SharedMapping reader =
      MapSharedMemory(buffer.memory.file, SharedValuesLayout::Bytes(10)).value();
  EXPECT_EQ(SharedValuesLayout::Values(reader)[9], 1.5f);
  EXPECT_EQ(SharedValuesLayout::Filling(reader), buffer.filling);

  const uint64_t number = buffer.number;
  const uint64_t filling = buffer.filling;
  shared.reset();
  EXPECT_EQ(SharedValuesLayout::Filling(reader), filling) << "nobody writes to it yet";
  const auto again = pool.Take();
  EXPECT_EQ(again->shared()->number, number);
  EXPECT_EQ(SharedValuesLayout::Filling(reader), filling + 1);
  EXPECT_NE(pool.Take()->shared()->number, number);
}

TEST(BufferPoolTest, AtOnceComesWhatIsIdleOrNeedsNoTime) {
  BufferPool pool(10);
  EXPECT_NE(pool.TakeAtOnce(), nullptr) << "made when it is written";

  pool.Share();
  EXPECT_EQ(pool.TakeAtOnce(), nullptr) << "none is shared yet";
  pool.Take().reset();
  EXPECT_NE(pool.TakeAtOnce()->shared(), nullptr);
  EXPECT_EQ(pool.live(), 0u);
}

TEST(BufferPoolDeathTest, SaysThatMemoryIsUsedUp) {
  BufferPool pool(std::numeric_limits<size_t>::max() / 8);

  EXPECT_EXIT((void)pool.Take(), testing::ExitedWithCode(75), "out of memory");
  EXPECT_EXIT((void)pool.TakeAtOnce(), testing::ExitedWithCode(75), "out of memory");
}

}  // namespace
}  // namespace slipstream
