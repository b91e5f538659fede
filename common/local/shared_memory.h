#ifndef SLIPSTREAM_COMMON_LOCAL_SHARED_MEMORY_H_
#define SLIPSTREAM_COMMON_LOCAL_SHARED_MEMORY_H_

#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"
#include "common/files/file_descriptor.h"

namespace slipstream {

/// Memory that processes of one machine share through memfds: files without a name, which are gone
/// when the last process that has them open or mapped is. So nothing is left behind by a kill.
///
/// Whoever makes such memory has all its pages made and seals it before anyone else gets it: its
/// size cannot change, nor can pages be taken out of it, so no process can make another fault by
/// cutting it short, or pay for it; nobody else can write to it; and no seal can be taken off or
/// added.

/// Pages of shared memory in this process, until it goes. Movable only.
class SharedMapping {
 public:
  SharedMapping() = default;

  /// Takes over what mmap gave.
  SharedMapping(void* pages, size_t size) : pages_(static_cast<std::byte*>(pages)), size_(size) {}
  SharedMapping(SharedMapping&& other) noexcept
      : pages_(std::exchange(other.pages_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  SharedMapping& operator=(SharedMapping&& other) noexcept {
    std::swap(pages_, other.pages_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~SharedMapping();

  /// Its maker may write to it at any time. What is read from memory that another process writes is
  /// copied first and believed afterwards.
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

/// New memory, zero at first, of at least so many bytes: their MappedSize, see large_pages.h.
/// RESOURCE_EXHAUSTED if it cannot be had, FAILED_PRECONDITION if this system cannot seal it so.
absl::StatusOr<SharedMemory> MakeSharedMemory(size_t bytes);

/// Maps what another process made, whole and for reading. FAILED_PRECONDITION if it was not made as
/// here, RESOURCE_EXHAUSTED if it cannot be mapped.
absl::StatusOr<SharedMapping> MapSharedMemory(const FileDescriptor& file);

/// The same; FAILED_PRECONDITION also if it was not made of so many bytes.
absl::StatusOr<SharedMapping> MapSharedMemory(const FileDescriptor& file, size_t bytes);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_LOCAL_SHARED_MEMORY_H_
