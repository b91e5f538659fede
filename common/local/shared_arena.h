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

/// Flat arrays that one process computes in and that other processes of its machine read: a
/// worker's gradients, for shards on the same machine. Movable only.
class SharedArena {
 public:
  /// Makes `parts` parts of `values` zeros each, every part on pages of its own. RESOURCE_EXHAUSTED
  /// if there is no memory for them, FAILED_PRECONDITION if other processes could not use them on
  /// this system.
  static absl::StatusOr<SharedArena> Make(size_t parts, size_t values);

  std::span<float> part(size_t i) const;

  /// The file by which other processes open the arena; they can only read it.
  const FileDescriptor& file() const { return memory_.file; }

  /// Returns where `values` begin in the arena, in bytes. REQUIRES: they lie in the arena.
  uint64_t Position(std::span<const float> values) const;

 private:
  SharedArena(SharedMemory memory, size_t values) : memory_(std::move(memory)), values_(values) {}

  SharedMemory memory_;
  size_t values_;  // Per part.
};

/// The arena of another process, which may write to it at any time. So its values are copied, with
/// each byte loaded once, and decisions are made only about the copy. Movable only.
class ForeignArena {
 public:
  /// Opens another process's arena. FAILED_PRECONDITION if the file is no arena, RESOURCE_EXHAUSTED
  /// if it cannot be mapped.
  static absl::StatusOr<ForeignArena> Open(const FileDescriptor& file);

  /// From now on, pages that Forget is given no longer count as this process's memory.
  void DropCopied() { drops_ = true; }

  /// Returns the arena's size in bytes.
  uint64_t size() const { return mapping_.size(); }

  /// Copies bytes from `begin` on until `to` is full. REQUIRES: the arena has that many.
  void Copy(uint64_t begin, std::span<std::byte> to) const;

  /// Says that these bytes have been copied. Has no effect before DropCopied. REQUIRES: the arena
  /// has that many.
  void Forget(uint64_t begin, uint64_t bytes) const;

 private:
  explicit ForeignArena(SharedMapping mapping) : mapping_(std::move(mapping)) {}

  SharedMapping mapping_;
  bool drops_ = false;
};

/// Values of an arena that have not been copied yet.
struct UnreadValues {
  const ForeignArena* arena = nullptr;
  uint64_t begin = 0;  // In bytes.
  uint64_t count = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_LOCAL_SHARED_ARENA_H_
