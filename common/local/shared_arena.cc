#include "common/local/shared_arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "common/base/check.h"

namespace slipstream {

absl::StatusOr<SharedArena> SharedArena::Make(size_t values) {
  absl::StatusOr<SharedMemory> memory = MakeSharedMemory(values * sizeof(float));
  if (!memory.ok()) return memory.status();
  // Not every system tells others what they want to know of it.
  if (const auto seen = MapSharedMemory(memory->file); !seen.ok()) return seen.status();
  return SharedArena(*std::move(memory), values);
}

uint64_t SharedArena::Position(std::span<const float> part) const {
  const std::span<const float> all = values();
  PS_CHECK(part.data() >= all.data() && part.data() + part.size() <= all.data() + all.size());
  return static_cast<uint64_t>(part.data() - all.data()) * sizeof(float);
}

absl::StatusOr<ForeignArena> ForeignArena::Open(const FileDescriptor& file) {
  absl::StatusOr<SharedMapping> mapping = MapSharedMemory(file);
  if (!mapping.ok()) return mapping.status();
  return ForeignArena(*std::move(mapping));
}

void ForeignArena::Copy(uint64_t begin, std::span<std::byte> to) const {
  PS_CHECK(begin <= size() && to.size() <= size() - begin);
  std::memcpy(to.data(), mapping_.data() + begin, to.size());
}

void ForeignArena::Forget(uint64_t begin, uint64_t bytes) const {
  PS_CHECK(begin <= size() && bytes <= size() - begin);
  if (!drops_) return;
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t first = begin / page * page;
  // What lies beside it on the same pages is mapped again when it is needed. Nothing else can
  // become of this: the pages stay the maker's.
  (void)madvise(mapping_.data() + first, begin + bytes - first, MADV_DONTNEED);
}

}  // namespace slipstream
