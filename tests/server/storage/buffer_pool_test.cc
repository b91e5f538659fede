#include "server/storage/buffer_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>

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
}

TEST(BufferPoolTest, ABufferThatComesBackIsUsedAgain) {
  BufferPool pool(10);
  ASSERT_TRUE(pool.Reserve(1));
  const float* const first = pool.Take()->values().data();

  EXPECT_EQ(pool.live(), 0u);
  EXPECT_EQ(pool.Take()->values().data(), first);
}

TEST(BufferPoolTest, CountsWhatIsOutAndOutlivesItsOwner) {
  std::optional<BufferPool> pool(10);
  const auto one = pool->Take();
  const auto two = pool->Take();
  EXPECT_EQ(pool->live(), 2u);

  pool.reset();

  one->values()[9] = 1;  // Still there.
  EXPECT_EQ(one->values()[9], 1);
}

}  // namespace
}  // namespace slipstream
