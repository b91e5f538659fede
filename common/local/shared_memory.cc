#include "common/local/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

#include "common/base/check.h"
#include "common/memory/large_pages.h"

namespace slipstream {
namespace {

// Headers older than Linux 5.1 do not have it.
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

// Of them FUTURE_WRITE also keeps holes from being made.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE;

constexpr size_t kBlockBytes = 512;  // As stat() counts.

std::string ErrorText(int error) { return std::generic_category().message(error); }

absl::Status Exhausted(const char* what) {
  return absl::ResourceExhaustedError(
      fmt::format("cannot {} shared memory: {}", what, ErrorText(errno)));
}

absl::StatusOr<SharedMapping> Map(const FileDescriptor& file, size_t size, int protection) {
  void* const pages = MapAligned(size, protection, MAP_SHARED, file.get());
  if (pages == nullptr) return Exhausted("map");
  return SharedMapping(pages, size);
}

/// Pages behind all of the file. Piece by piece, as a signal undoes the piece at which it comes.
bool MakePages(const FileDescriptor& file, size_t size) {
  constexpr size_t kPiece = size_t{16} << 20;
  for (size_t begin = 0; begin < size; begin += kPiece) {
    do {
      errno = posix_fallocate(file.get(), static_cast<off_t>(begin),
                              static_cast<off_t>(std::min(kPiece, size - begin)));
    } while (errno == EINTR);
    if (errno != 0) return false;
  }
  return true;
}

}  // namespace

SharedMapping::~SharedMapping() {
  if (pages_ != nullptr) PS_CHECK(munmap(pages_, size_) == 0);
}

absl::StatusOr<SharedMemory> MakeSharedMemory(size_t bytes) {
  const size_t size = MappedSize(bytes);
  SharedMemory memory = {
      .file = FileDescriptor(memfd_create("slipstream", MFD_CLOEXEC | MFD_ALLOW_SEALING)),
      .mapping = {}};
  if (!memory.file.is_open()) return Exhausted("make");
  if (ftruncate(memory.file.get(), static_cast<off_t>(size)) != 0) return Exhausted("size");
  absl::StatusOr<SharedMapping> mapping = Map(memory.file, size, PROT_READ | PROT_WRITE);
  if (!mapping.ok()) return mapping.status();
  memory.mapping = *std::move(mapping);
  MakeLargePages(memory.mapping.data(), size);
  if (!MakePages(memory.file, size)) return Exhausted("fill");
  // After the mapping, which goes on being writable: the seal is for mappings to come.
  if (fcntl(memory.file.get(), F_ADD_SEALS, kSeals | F_SEAL_SEAL) != 0) {
    return absl::FailedPreconditionError("cannot seal shared memory: " + ErrorText(errno));
  }
  return memory;
}

absl::StatusOr<SharedMapping> MapSharedMemory(const FileDescriptor& file) {
  // First: what is looked at afterwards stays so, and is asked of memory, which always answers.
  const int seals = fcntl(file.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) {
    return absl::FailedPreconditionError("the shared memory is not sealed");
  }
  struct stat facts = {};
  struct statfs system = {};
  if (fstat(file.get(), &facts) != 0 || fstatfs(file.get(), &system) != 0) {
    return absl::FailedPreconditionError("the shared memory cannot be looked at");
  }
  // Memory of huge pages has seals, too, but not always pages behind it.
  const auto size = static_cast<size_t>(std::max<off_t>(facts.st_size, 0));
  if (system.f_type != TMPFS_MAGIC || size == 0 || MappedSize(size) != size) {
    return absl::FailedPreconditionError("the shared memory was made in another way");
  }
  // Pages behind the end would be counted as if they were before it.
  const bool is_cut = ftruncate(file.get(), facts.st_size) == 0 && fstat(file.get(), &facts) == 0;
  if (!is_cut || facts.st_blocks < 0 || static_cast<size_t>(facts.st_blocks) * kBlockBytes < size) {
    return absl::FailedPreconditionError("the shared memory has holes");
  }
  return Map(file, size, PROT_READ);
}

absl::StatusOr<SharedMapping> MapSharedMemory(const FileDescriptor& file, size_t bytes) {
  absl::StatusOr<SharedMapping> mapping = MapSharedMemory(file);
  if (!mapping.ok() || mapping->size() == MappedSize(bytes)) return mapping;
  return absl::FailedPreconditionError(fmt::format(
      "shared memory of {} bytes came, {} were expected", mapping->size(), MappedSize(bytes)));
}

}  // namespace slipstream
