#include "server/port_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace slipstream {
namespace {

namespace fs = std::filesystem;

fs::path FreshFolder(const std::string& name) {
  const fs::path folder = fs::path(testing::TempDir()) / name;
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

std::string Content(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(PortFileTest, ReplacesWhatAnEarlierServerWroteAndLeavesNothingElse) {
  const fs::path folder = FreshFolder("port_file");
  const fs::path path = folder / "port";
  ASSERT_TRUE(WritePortFile(path, "localhost:1").ok());

  ASSERT_TRUE(WritePortFile(path, "localhost:40123").ok());

  EXPECT_EQ(Content(path), "localhost:40123\n");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);
}

TEST(PortFileTest, NamesThePathThatCannotBeWritten) {
  const fs::path folder = FreshFolder("port_file_missing");

  const absl::Status status = WritePortFile(folder / "none" / "port", "localhost:1");

  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(status.message().find("none/port"), absl::string_view::npos);
}

}  // namespace
}  // namespace slipstream
