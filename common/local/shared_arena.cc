#include "common/local/shared_arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "common/base/check.h"

namespace slipstream {

namespace {

size_t PageSize() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

// Rounds up to whole pages: devices pin whole pages, each once.
size_t PartBytes(size_t values) {
  return (values * sizeof(float) + PageSize() - 1) / PageSize() * PageSize();
}

}  // namespace

absl::StatusOr<SharedArena> SharedArena::Make(size_t parts, size_t values) {
  absl::StatusOr<SharedMemory> memory = MakeSharedMemory(parts * PartBytes(values));
  if (!memory.ok()) return memory.status();
  // Some systems do not report the facts that MapSharedMemory checks, so try it here.
  if (const auto seen = MapSharedMemory(memory->file); !seen.ok()) return seen.status();
  return SharedArena(*std::move(memory), values);
}

std::span<float> SharedArena::part(size_t i) const {
  PS_CHECK((i + 1) * PartBytes(values_) <= memory_.mapping.size());
  return {reinterpret_cast<float*>(memory_.mapping.data() + i * PartBytes(values_)), values_};
}

uint64_t SharedArena::Position(std::span<const float> values) const {
  const std::span<const std::byte> bytes = std::as_bytes(values);
  const std::byte* const begin = memory_.mapping.data();
  PS_CHECK(bytes.data() >= begin && bytes.data() + bytes.size() <= begin + memory_.mapping.size());
  return static_cast<uint64_t>(bytes.data() - begin);
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
  const uint64_t first = begin / PageSize() * PageSize();
  // Values beside these on the same pages are mapped again when they are needed. No data can be
  // lost: the pages belong to the process that made them.
  (void)madvise(mapping_.data() + first, begin + bytes - first, MADV_DONTNEED);
}

}  // namespace slipstream
