#ifndef SLIPSTREAM_TESTS_WORKER_DATA_TEMP_DIRECTORY_H_
#define SLIPSTREAM_TESTS_WORKER_DATA_TEMP_DIRECTORY_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace slipstream {

/// An empty directory for one test, removed with its contents at the end.
///
/// Not thread-safe: one owner.
class TempDirectory {
 public:
  TempDirectory() : path_(testing::TempDir() + "/slipstream-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) ADD_FAILURE() << "cannot make " << path_;
  }
  ~TempDirectory() { std::filesystem::remove_all(path_); }
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;

  const std::string& path() const { return path_; }

  void Write(const std::string& name, const std::vector<uint8_t>& bytes) const {
    std::ofstream file(path_ + "/" + name, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  void Write(const std::string& name, const std::string& text) const {
    Write(name, std::vector<uint8_t>(text.begin(), text.end()));
  }
  void Remove(const std::string& name) const { std::filesystem::remove(path_ + "/" + name); }

 private:
  std::string path_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_WORKER_DATA_TEMP_DIRECTORY_H_
