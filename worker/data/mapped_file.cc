#include "worker/data/mapped_file.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>
#include <string_view>

#include "common/base/check.h"
#include "common/process/exit_code.h"

namespace slipstream {
namespace {

class Mapping;

// The handler of SIGBUS looks here for the file. A program maps fewer than ten files; the message
// does not name files beyond the 32nd.
std::array<std::atomic<const Mapping*>, 32> mappings;

std::atomic<uint64_t> mapped_bytes = 0;

// The action of SIGBUS before this file's handler was installed.
struct sigaction action_before = {};

/// A mapped file.
///
/// Thread-safe: const after construction.
class Mapping {
 public:
  Mapping(const std::string& path, void* begin, size_t size)
      : text_(fmt::format("error: {}: it has become shorter, or cannot be read any more, while it "
                          "is in use; replace a data file by another one (mv), but do not write to "
                          "it\n",
                          path)),
        begin_(begin),
        size_(size) {
    mapped_bytes += size;
    for (std::atomic<const Mapping*>& place : mappings) {
      const Mapping* none = nullptr;
      if (place.compare_exchange_strong(none, this)) return;
    }
  }
  ~Mapping() {
    for (std::atomic<const Mapping*>& place : mappings) {
      const Mapping* self = this;
      if (place.compare_exchange_strong(self, nullptr)) break;
    }
    munmap(begin_, size_);
    mapped_bytes -= size_;
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::span<const uint8_t> bytes() const { return {static_cast<const uint8_t*>(begin_), size_}; }
  bool Has(const void* address) const {
    const auto* const byte = static_cast<const uint8_t*>(address);
    return byte >= bytes().data() && byte < bytes().data() + size_;
  }
  std::string_view lost_text() const { return text_; }

 private:
  const std::string text_;  // Made beforehand: a signal's handler must not allocate.
  void* const begin_;
  const size_t size_;
};

/// The system sends SIGBUS where a page of a mapped file cannot be had.
void OnBusError(int signal, siginfo_t* info, void* /*context*/) {
  if (info->si_code == BUS_MCEERR_AO) return;  // Of bad memory that nothing has used.
  const bool is_of_access = info->si_code > 0;
  for (const std::atomic<const Mapping*>& place : mappings) {
    const Mapping* const mapping = is_of_access ? place.load() : nullptr;
    if (mapping == nullptr || !mapping->Has(info->si_addr)) continue;
    const std::string_view text = mapping->lost_text();
    (void)!write(STDERR_FILENO, text.data(), text.size());
    std::_Exit(static_cast<int>(ExitCode::kIo));
  }
  sigaction(signal, &action_before, nullptr);  // Not ours: the access is repeated.
  if (!is_of_access) (void)raise(signal);      // Some process has sent it: kill -BUS.
}

void GuardMappings() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action = {};
    action.sa_sigaction = OnBusError;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    PS_CHECK(sigaction(SIGBUS, &action, &action_before) == 0);
  });
}

constexpr size_t kPageBytes = 4096;
constexpr size_t kReportedBytes = size_t{1} << 20;

/// Brings the bytes into the page cache. Returns false if `progress` asked to stop.
bool Touch(std::span<const uint8_t> bytes, const std::string& path, const ReadProgress& progress) {
  for (size_t at = 0; at < bytes.size(); at += kPageBytes) {
    (void)*static_cast<const volatile uint8_t*>(&bytes[at]);
    const size_t done = std::min(at + kPageBytes, bytes.size());
    if (done % kReportedBytes != 0 && done < bytes.size()) continue;
    const double share = static_cast<double>(done) / static_cast<double>(bytes.size());
    if (progress && !progress(path, share)) return false;
  }
  return true;
}

/// Reads the whole file, which has `size` bytes, into memory.
absl::StatusOr<SharedBytes> ReadWhole(const OpenFile& file, const std::string& path, size_t size,
                                      const ReadProgress& progress) {
  Bytes bytes(size);
  for (size_t at = 0; at < size;) {
    const size_t piece = std::min(kReportedBytes, size - at);
    const ssize_t got = pread(fileno(file.get()), &bytes[at], piece, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      return absl::DataLossError(
          fmt::format("{}: cannot be read: {}", path,
                      got < 0 ? strerror(errno) : "it has become shorter meanwhile"));
    }
    at += static_cast<size_t>(got);
    const double share = static_cast<double>(at) / static_cast<double>(size);
    if (progress && !progress(path, share)) return absl::CancelledError("stopped");
  }
  return SharedBytes(std::move(bytes));
}

}  // namespace

uint64_t MappedBytes() { return mapped_bytes; }

SharedBytes::SharedBytes(Bytes own) {
  const auto kept = std::make_shared<const Bytes>(std::move(own));
  bytes = *kept;
  owner = kept;
}

absl::StatusOr<SharedBytes> MapFile(const std::string& path, uint64_t bytes_max,
                                    const ReadProgress& progress) {
  const absl::StatusOr<OpenFile> file = OpenToRead(path);
  if (!file.ok()) return file.status();
  return MapFile(*file, path, bytes_max, progress);
}

absl::StatusOr<SharedBytes> MapFile(const OpenFile& file, const std::string& path,
                                    uint64_t bytes_max, const ReadProgress& progress) {
  const absl::StatusOr<uint64_t> size = FileBytes(file, path);
  if (!size.ok()) return size.status();
  if (*size > bytes_max) {
    return absl::DataLossError(
        fmt::format("{}: has more than {} bytes, the most accepted", path, bytes_max));
  }
  if (*size == 0) return SharedBytes();
  if (absl::Status memory = CheckMemory(path, *size); !memory.ok()) return memory;
  // Private, as some file systems refuse to share; the pages are the page cache's all the same.
  void* const begin = mmap(nullptr, *size, PROT_READ, MAP_PRIVATE, fileno(file.get()), 0);
  if (begin == MAP_FAILED && (errno == ENOMEM || errno == EAGAIN)) {
    return absl::ResourceExhaustedError(
        fmt::format("{}: no room to map {} bytes: {}; raise ulimit -v, or use less data", path,
                    *size, strerror(errno)));
  }
  // Some file systems cannot map.
  if (begin == MAP_FAILED) return ReadWhole(file, path, *size, progress);
  GuardMappings();
  auto mapping = std::make_shared<const Mapping>(path, begin, *size);
  const std::span<const uint8_t> bytes = mapping->bytes();
  if (!Touch(bytes, path, progress)) return absl::CancelledError("stopped");
  return SharedBytes(bytes, std::move(mapping));
}

absl::StatusOr<SharedBytes> MapOrUnpack(const std::string& path, const ReadProgress& progress) {
  absl::StatusOr<SharedBytes> mapped = MapFile(path, kFileBytesMax, progress);
  if (!mapped.ok() || !IsGzip(mapped->bytes)) return mapped;
  absl::StatusOr<Bytes> unpacked = Gunzip(mapped->bytes, path, kFileBytesMax, progress);
  if (!unpacked.ok()) return unpacked.status();
  return SharedBytes(*std::move(unpacked));
}

}  // namespace slipstream
