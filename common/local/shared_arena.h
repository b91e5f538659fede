#ifndef SLIPSTREAM_COMMON_LOCAL_SHARED_ARENA_H_
#define SLIPSTREAM_COMMON_LOCAL_SHARED_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files/file_descriptor.h"
#include "common/local/shared_memory.h"

namespace slipstream {

/// Flat arrays that one process computes in and that others of its machine take values from: a
/// worker's gradients, for shards beside it. Movable only.
class SharedArena {
 public:
  /// So many parts of zeros, each of `values` and on pages of its own. RESOURCE_EXHAUSTED if they
  /// cannot be had, FAILED_PRECONDITION if others could not use them on this system.
  static absl::StatusOr<SharedArena> Make(size_t parts, size_t values);

  std::span<float> part(size_t i) const;

  /// What others open it by; they can only read.
  const FileDescriptor& file() const { return memory_.file; }

  /// Where `values` begin, in bytes. REQUIRES: they lie in the arena.
  uint64_t Position(std::span<const float> values) const;

 private:
  SharedArena(SharedMemory memory, size_t values) : memory_(std::move(memory)), values_(values) {}

  SharedMemory memory_;
  size_t values_;  // Of a part.
};

/// The arena of another process, which may write to it at any time. So its values are copied, each
/// byte loaded once, and what is decided about is the copy. Movable only.
class ForeignArena {
 public:
  /// FAILED_PRECONDITION if the file is no arena, RESOURCE_EXHAUSTED if it cannot be mapped.
  static absl::StatusOr<ForeignArena> Open(const FileDescriptor& file);

  /// From now on, what Forget names no longer counts as this process's memory.
  void DropCopied() { drops_ = true; }

  /// In bytes.
  uint64_t size() const { return mapping_.size(); }

  /// The bytes from `begin` on. REQUIRES: the arena has as many.
  void Copy(uint64_t begin, std::span<std::byte> to) const;

  /// They have been copied. Without effect but after DropCopied. REQUIRES: the arena has as many.
  void Forget(uint64_t begin, uint64_t bytes) const;

 private:
  explicit ForeignArena(SharedMapping mapping) : mapping_(std::move(mapping)) {}

  SharedMapping mapping_;
  bool drops_ = false;
};

/// Values that have not been copied yet.
struct UnreadValues {
  const ForeignArena* arena = nullptr;
  uint64_t begin = 0;  // In bytes.
  uint64_t count = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_LOCAL_SHARED_ARENA_H_
