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

// Headers older than Linux 5.1 do not define it.
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

// FUTURE_WRITE also prevents holes from being punched.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE;

constexpr size_t kBlockBytes = 512;  // The unit of st_blocks.

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

/// Allocates pages behind all of the file. It goes piece by piece, as a signal undoes the piece
/// during which it comes. Returns false on failure, with the reason in errno.
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
  // The seal comes after the mapping: it forbids later writable mappings, and this one stays
  // writable.
  if (fcntl(memory.file.get(), F_ADD_SEALS, kSeals | F_SEAL_SEAL) != 0) {
    return absl::FailedPreconditionError("cannot seal shared memory: " + ErrorText(errno));
  }
  return memory;
}

absl::StatusOr<SharedMapping> MapSharedMemory(const FileDescriptor& file) {
  // The seals are checked first: after that, the facts below cannot change, and the file is known
  // to be memory, so that asking for them cannot hang.
  const int seals = fcntl(file.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) {
    return absl::FailedPreconditionError("the shared memory is not sealed");
  }
  struct stat facts = {};
  struct statfs system = {};
  if (fstat(file.get(), &facts) != 0 || fstatfs(file.get(), &system) != 0) {
    return absl::FailedPreconditionError("the shared memory cannot be looked at");
  }
  // Memory of huge pages has seals, too, but does not always have pages behind it.
  const auto size = static_cast<size_t>(std::max<off_t>(facts.st_size, 0));
  if (system.f_type != TMPFS_MAGIC || size == 0 || MappedSize(size) != size) {
    return absl::FailedPreconditionError("the shared memory was made in another way");
  }
  // Pages behind the end would be counted as if they were before it, so the file is cut there.
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
