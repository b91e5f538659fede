#include "common/process/process_limits.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>

namespace slipstream {
namespace {

constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

/// Returns the first number in a file; nothing if there is none, as in a limit of "max".
std::optional<uint64_t> ReadNumber(const std::string& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  if (!(file >> number)) return std::nullopt;
  return number;
}

/// Returns the number behind `wanted` in a file with a name and a number in each line.
std::optional<uint64_t> ReadNamed(const std::string& path, std::string_view wanted) {
  std::ifstream file(path);
  for (std::string name; file >> name;) {
    uint64_t number = 0;
    if (name == wanted && file >> number) return number;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::nullopt;
}

MemoryBytes OfMachine(const std::string& root) {
  const std::string path = root + "/proc/meminfo";
  const auto bytes = [&path](std::string_view name) {
    const std::optional<uint64_t> kib = ReadNamed(path, name);
    return kib.has_value() ? *kib * 1024 : kUnlimited;
  };
  return {.limit = bytes("MemTotal:"), .available = bytes("MemAvailable:")};
}

/// The names under which a version of control groups tells about memory.
struct GroupFiles {
  std::string_view mount;
  std::string_view limit;
  std::string_view used;
  std::string_view inactive_file;
  std::string_view active_file;
};

constexpr GroupFiles kVersion1 = {"/sys/fs/cgroup/memory", "/memory.limit_in_bytes",
                                  "/memory.usage_in_bytes", "total_inactive_file",
                                  "total_active_file"};
constexpr GroupFiles kVersion2 = {"/sys/fs/cgroup", "/memory.max", "/memory.current",
                                  "inactive_file", "active_file"};

MemoryBytes OfGroup(const std::string& directory, const GroupFiles& files) {
  const auto limit = ReadNumber(directory + std::string(files.limit));
  const auto used = ReadNumber(directory + std::string(files.used));
  if (!limit.has_value() || !used.has_value()) return {limit.value_or(kUnlimited), kUnlimited};
  const std::string stat = directory + "/memory.stat";
  // The system gives these file pages up before it refuses memory to the group.
  const uint64_t kept = ReadNamed(stat, files.inactive_file).value_or(0) +
                        ReadNamed(stat, files.active_file).value_or(0);
  const uint64_t needed = *used - std::min(*used, kept);
  return {.limit = *limit, .available = *limit - std::min(*limit, needed)};
}

MemoryBytes Tighter(const MemoryBytes& one, const MemoryBytes& other) {
  return {std::min(one.limit, other.limit), std::min(one.available, other.available)};
}

/// Returns the tightest bounds of the group and of all groups around it. A container may see its
/// groups under names that have directories only outside, on the machine; its own limits are then
/// at the top.
MemoryBytes OfGroups(const std::string& root, std::string group, const GroupFiles& files) {
  const std::string mount = root + std::string(files.mount);
  while (group.ends_with('/')) group.pop_back();
  MemoryBytes tightest = OfGroup(mount, files);
  while (!group.empty()) {
    tightest = Tighter(tightest, OfGroup(mount + group, files));
    group.resize(group.rfind('/') == group.npos ? 0 : group.rfind('/'));
  }
  return tightest;
}

bool NamesMemory(std::string_view controllers) {
  std::istringstream names{std::string(controllers)};
  for (std::string name; std::getline(names, name, ',');) {
    if (name == "memory") return true;
  }
  return false;
}

}  // namespace

MemoryBytes ReadMemoryBytes(const std::string& root) {
  MemoryBytes tightest = OfMachine(root);
  // Each line is "<number>:<controllers>:<path>", without controllers for version 2. If both
  // versions are mounted, memory belongs to one of them, and the other has no such files.
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = first == line.npos ? first : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) tightest = Tighter(tightest, OfGroups(root, path, kVersion2));
    if (NamesMemory(controllers)) tightest = Tighter(tightest, OfGroups(root, path, kVersion1));
  }
  return tightest;
}

uint64_t RaiseOpenFilesLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlim_t soft = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : soft;
}

}  // namespace slipstream
