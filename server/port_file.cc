#include "server/port_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace slipstream {
namespace {

absl::Status Failure(const std::string& path) {
  return absl::DataLossError("cannot write " + path + ": " + std::strerror(errno));
}

}  // namespace

absl::Status WritePortFile(const std::string& path, const std::string& address) {
  // Several servers that are told the same path by mistake must not mix their lines.
  const std::string unfinished = path + "." + std::to_string(getpid());
  std::FILE* file = std::fopen(unfinished.c_str(), "we");
  if (file == nullptr) return Failure(unfinished);
  const bool is_written = std::fprintf(file, "%s\n", address.c_str()) > 0;
  const bool is_closed = std::fclose(file) == 0;
  if (is_written && is_closed && std::rename(unfinished.c_str(), path.c_str()) == 0) {
    return absl::OkStatus();
  }
  absl::Status failure = Failure(path);
  std::remove(unfinished.c_str());
  return failure;
}

}  // namespace slipstream
