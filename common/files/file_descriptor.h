#ifndef SLIPSTREAM_COMMON_FILES_FILE_DESCRIPTOR_H_
#define SLIPSTREAM_COMMON_FILES_FILE_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace slipstream {

/// An open file that is closed when this object is destroyed. The result of close() is ignored: a
/// caller that must know that the bytes are on the disk calls fsync() first.
class FileDescriptor {
 public:
  FileDescriptor() = default;

  /// Takes over `fd`; -1, which open() returns on failure, means that there is no file.
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }

  bool is_open() const { return fd_ >= 0; }
  int get() const { return fd_; }

  /// Returns the descriptor and gives up its ownership: from now on the caller closes it.
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_FILES_FILE_DESCRIPTOR_H_
