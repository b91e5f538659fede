#include "common/kernels/chunk_hash.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <vector>

#include "common/base/philox.h"

namespace slipstream {
namespace {

TEST(ChunkHashTest, EveryVariantIsTheLibrarysHoweverTheBytesAreCut) {
  for (size_t v = 0; v < ChunkHash::kVariants; ++v) {
    const ChunkHash::Variant& variant = *ChunkHash::AllVariants()[v];
    if (!variant.is_supported()) continue;
    ChunkHash hash(variant);
    for (uint64_t seed = 0; seed < 300; ++seed) {
      SCOPED_TRACE(testing::Message() << variant.name << ", seed " << seed);
      RandomStream random(seed, 0);
      std::vector<std::byte> bytes(random.Below(3000));
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.Below(256));
      hash.Begin(seed);
      for (ByteSegment rest = bytes; !rest.empty();) {
        const size_t taken = std::min<size_t>(1 + random.Below(700), rest.size());
        hash.Add(rest.first(taken));
        rest = rest.subspan(taken);
      }
      ASSERT_EQ(hash.Finish(), XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed));
    }
  }
}

TEST(ChunkHashTest, TheOneThatIsPickedIsSupported) {
  ChunkHash hash;
  hash.Begin(5);
  EXPECT_EQ(hash.Finish(), XXH3_64bits_withSeed("", 0, 5));
}

}  // namespace
}  // namespace slipstream
