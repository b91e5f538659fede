#ifndef SLIPSTREAM_COMMON_LOCAL_SHARED_MEMORY_H_
#define SLIPSTREAM_COMMON_LOCAL_SHARED_MEMORY_H_

#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"
#include "common/files/file_descriptor.h"

namespace slipstream {

/// Memory that processes of one machine share through memfds: files without a name, which are gone
/// when the last process that has them open or mapped is gone. So a killed process leaves nothing
/// behind.
///
/// The process that makes such memory allocates all of its pages and seals it before anybody else
/// gets it. Its size cannot change, and pages cannot be taken out of it: so no process can make
/// another one fault by cutting the memory short, or make it pay for pages. Nobody else can write
/// to it, and no seal can be taken off or added.

/// Pages of shared memory that are mapped in this process as long as the object lives. Movable
/// only.
class SharedMapping {
 public:
  SharedMapping() = default;

  /// Takes over a mapping that mmap returned.
  SharedMapping(void* pages, size_t size) : pages_(static_cast<std::byte*>(pages)), size_(size) {}
  SharedMapping(SharedMapping&& other) noexcept
      : pages_(std::exchange(other.pages_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  SharedMapping& operator=(SharedMapping&& other) noexcept {
    std::swap(pages_, other.pages_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~SharedMapping();

  /// Returns the pages. Their maker may write to them at any time: memory that another process
  /// writes is copied first, and only the copy is checked and used.
  std::byte* data() const { return pages_; }
  size_t size() const { return size_; }

 private:
  std::byte* pages_ = nullptr;
  size_t size_ = 0;
};

struct SharedMemory {
  FileDescriptor file;
  SharedMapping mapping;  // Readable and writable.
};

/// Makes memory of MappedSize(bytes) bytes (large_pages.h), which are zero at first.
/// RESOURCE_EXHAUSTED if there is not enough, FAILED_PRECONDITION if this system cannot seal it so.
absl::StatusOr<SharedMemory> MakeSharedMemory(size_t bytes);

/// Maps all of the memory that another process made, for reading. FAILED_PRECONDITION if it was not
/// made by MakeSharedMemory, RESOURCE_EXHAUSTED if it cannot be mapped.
absl::StatusOr<SharedMapping> MapSharedMemory(const FileDescriptor& file);

/// Does the same. FAILED_PRECONDITION also if the memory was not made for `bytes` bytes.
absl::StatusOr<SharedMapping> MapSharedMemory(const FileDescriptor& file, size_t bytes);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_LOCAL_SHARED_MEMORY_H_
