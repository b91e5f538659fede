#ifndef SLIPSTREAM_SERVER_STORAGE_BLOCK_HASH_H_
#define SLIPSTREAM_SERVER_STORAGE_BLOCK_HASH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

struct XXH3_state_s;

namespace slipstream {

/// XXH3-128 (https://xxhash.com) of a block.
struct BlockHash {
  uint64_t high = 0;
  uint64_t low = 0;

  friend bool operator==(const BlockHash&, const BlockHash&) = default;
};

/// Returns the hash of bytes that lie in memory.
BlockHash HashOf(std::span<const std::byte> bytes);

/// Hashes bytes that come in several pieces.
///
/// Not thread-safe: one owner.
class BlockHasher {
 public:
  BlockHasher();

  void Add(std::span<const std::byte> bytes);

  /// Returns the hash of the bytes added since the last call, or since the beginning.
  BlockHash Finish();

 private:
  struct StateEnd {
    void operator()(XXH3_state_s* state) const;
  };

  std::unique_ptr<XXH3_state_s, StateEnd> state_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STORAGE_BLOCK_HASH_H_
