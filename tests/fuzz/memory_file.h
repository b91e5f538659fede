#ifndef SLIPSTREAM_TESTS_FUZZ_MEMORY_FILE_H_
#define SLIPSTREAM_TESTS_FUZZ_MEMORY_FILE_H_

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "common/base/check.h"
#include "common/files/file_descriptor.h"

namespace slipstream {

/// A file in memory, for a parser that needs a path. It is written anew for each input.
///
/// Not thread-safe: one owner.
class MemoryFile {
 public:
  MemoryFile() : file_(memfd_create("fuzz", MFD_CLOEXEC)) { PS_CHECK(file_.is_open()); }

  void Write(std::string_view bytes) {
    PS_CHECK(ftruncate(file_.get(), 0) == 0);
    PS_CHECK(pwrite(file_.get(), bytes.data(), bytes.size(), 0) ==
             static_cast<ssize_t>(bytes.size()));
  }

  std::string path() const { return "/proc/self/fd/" + std::to_string(file_.get()); }

 private:
  FileDescriptor file_;
};

/// A directory in which several names can link to a MemoryFile.
///
/// Not thread-safe: one owner.
class LinkDirectory {
 public:
  LinkDirectory() : path_((std::filesystem::temp_directory_path() / "fuzz-XXXXXX").string()) {
    PS_CHECK(mkdtemp(path_.data()) != nullptr);
  }
  ~LinkDirectory() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  LinkDirectory(const LinkDirectory&) = delete;
  LinkDirectory& operator=(const LinkDirectory&) = delete;

  const std::string& path() const { return path_; }

  void Link(const std::string& name, const MemoryFile& file) const {
    std::filesystem::create_symlink(file.path(), path_ + "/" + name);
  }

 private:
  std::string path_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_FUZZ_MEMORY_FILE_H_
