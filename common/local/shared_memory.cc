#include "common/local/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

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

constexpr int kFixedSize = F_SEAL_SHRINK | F_SEAL_GROW;

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

}  // namespace

SharedMapping::~SharedMapping() {
  if (pages_ != nullptr) PS_CHECK(munmap(pages_, size_) == 0);
}

absl::StatusOr<SharedMemory> MakeSharedMemory(size_t bytes, SharedWriters writers) {
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
  // After the mapping, which goes on being writable: the seal is for mappings to come.
  const int writing = writers == SharedWriters::kMakerAlone ? F_SEAL_FUTURE_WRITE : 0;
  if (fcntl(memory.file.get(), F_ADD_SEALS, kFixedSize | F_SEAL_SEAL | writing) != 0) {
    return Exhausted("seal");
  }
  return memory;
}

absl::StatusOr<SharedMapping> MapSharedMemory(const FileDescriptor& file, size_t bytes,
                                              SharedWriters writers) {
  const size_t size = MappedSize(bytes);
  const int seals = fcntl(file.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kFixedSize) != kFixedSize) {
    return absl::FailedPreconditionError("the size of the shared memory is not sealed");
  }
  struct stat facts = {};
  if (fstat(file.get(), &facts) != 0 || facts.st_size < 0 ||
      static_cast<size_t>(facts.st_size) != size) {
    return absl::FailedPreconditionError(
        fmt::format("shared memory of {} bytes came, {} were expected", facts.st_size, size));
  }
  return Map(file, size,
             writers == SharedWriters::kMakerAlone ? PROT_READ : PROT_READ | PROT_WRITE);
}

}  // namespace slipstream
