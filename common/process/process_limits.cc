#include "common/process/process_limits.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>

#include "common/process/exit_code.h"

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

bool Names(std::string_view controllers, std::string_view controller) {
  std::istringstream names{std::string(controllers)};
  for (std::string name; std::getline(names, name, ',');) {
    if (name == controller) return true;
  }
  return false;
}

/// Calls `visit(path, version)` with this process's group in each hierarchy that may bound what
/// `controller` counts. Each line of the file is "<number>:<controllers>:<path>", without
/// controllers for version 2. If both versions are mounted, the controller belongs to one of them,
/// and the other has no such files.
void ForGroups(const std::string& root, std::string_view controller, const auto& visit) {
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = first == line.npos ? first : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) visit(path, 2);
    if (Names(controllers, controller)) visit(path, 1);
  }
}

/// Takes the limit over if it leaves less room than the one that `room` has.
void Tighten(ThreadRoom& room, uint64_t limit, uint64_t used, std::string_view name) {
  const uint64_t left = limit - std::min(limit, used);
  if (left < room.left) room = {.limit = limit, .left = left, .name = std::string(name)};
}

/// Does so with the limits of a group and of all groups around it, as OfGroups does.
void TightenByGroups(ThreadRoom& room, const std::string& mount, std::string group) {
  while (group.ends_with('/')) group.pop_back();
  while (true) {
    const auto limit = ReadNumber(mount + group + "/pids.max");
    const auto used = ReadNumber(mount + group + "/pids.current");
    if (limit && used) Tighten(room, *limit, *used, "pids.max of the container or control group");
    if (group.empty()) return;
    group.resize(group.rfind('/') == group.npos ? 0 : group.rfind('/'));
  }
}

/// Returns whether the user's limit does not hold for this process: the system lets those pass it
/// that may change limits.
bool MayPassUserLimit(const std::string& root) {
  // The machine's own root, also without capabilities, as in a container.
  std::ifstream users(root + "/proc/self/uid_map");
  uint64_t inside = 0;
  uint64_t outside = 0;
  uint64_t count = 0;
  const bool is_initial = users >> inside >> outside >> count && count == 0xffff'ffff;
  if (is_initial && getuid() == 0) return true;
  constexpr uint64_t kMayPass = uint64_t{1} << 24 | uint64_t{1} << 21;  // CAP_SYS_RESOURCE, _ADMIN.
  std::ifstream status(root + "/proc/self/status");
  for (std::string name; status >> name;) {
    uint64_t set = 0;
    if (name == "CapEff:" && status >> std::hex >> set) return (set & kMayPass) != 0;
    status.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return false;
}

/// Returns how many threads this user's processes have, as far as they can be seen.
uint64_t ThreadsOfUser(const std::string& root) {
  uint64_t threads = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(root + "/proc", error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string path = entry->path().string() + "/status";
    if (ReadNamed(path, "Uid:") == uint64_t{getuid()} && entry->path().filename() != "self" &&
        entry->path().filename() != "thread-self") {
      threads += ReadNamed(path, "Threads:").value_or(1);
    }
  }
  return threads;
}

}  // namespace

MemoryBytes ReadMemoryBytes(const std::string& root) {
  MemoryBytes tightest = OfMachine(root);
  ForGroups(root, "memory", [&](const std::string& path, int version) {
    tightest = Tighter(tightest, OfGroups(root, path, version == 2 ? kVersion2 : kVersion1));
  });
  return tightest;
}

ThreadRoom ReadThreadRoom(const std::string& root) {
  ThreadRoom room;
  rlimit user = {};
  if (getrlimit(RLIMIT_NPROC, &user) == 0 && user.rlim_cur != RLIM_INFINITY &&
      !MayPassUserLimit(root)) {
    Tighten(room, user.rlim_cur, ThreadsOfUser(root), "ulimit -u");
  }
  ForGroups(root, "pids", [&](const std::string& path, int version) {
    TightenByGroups(room, root + (version == 2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/pids"), path);
  });
  return room;
}

absl::Status CheckThreadRoom(uint64_t needed, const ThreadRoom& room) {
  if (room.left >= needed) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      fmt::format("there is no room for this program's threads: the limit of processes and threads "
                  "({}) is {}, which leaves {}; needed: about {}. Raise it, or end other processes",
                  room.name, room.limit, room.left, needed));
}

std::string ThreadFailureText() {
  const ThreadRoom room = ReadThreadRoom();
  const std::string limit =
      room.name.empty()
          ? "the limit of processes and threads (ulimit -u, or pids.max of the "
            "container) or the memory is used up"
          : fmt::format("the limit of processes and threads ({}) is {}", room.name, room.limit);
  return fmt::format("cannot start a thread: {}; needed: about {}", limit, kThreadsNeeded);
}

void EndForLackOfMemory() noexcept {
  static constexpr std::string_view kText =
      "error: out of memory: the system refuses more (ulimit -v, or the memory of the machine, the "
      "container or the unit); psctl validate tells what a server needs\n";
  (void)!write(STDERR_FILENO, kText.data(), kText.size());  // stdio's lock may be taken.
  std::_Exit(static_cast<int>(ExitCode::kTemporary));
}

uint64_t RaiseOpenFilesLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlim_t soft = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : soft;
}

}  // namespace slipstream
