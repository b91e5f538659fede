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
#include <string_view>

#include "common/process/exit_code.h"

namespace slipstream {
namespace {

class Mapping;

// Where the handler of SIGBUS looks for the file. A program maps a handful; those beyond these are
// not named.
std::array<std::atomic<const Mapping*>, 32> mappings;

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
  for (const std::atomic<const Mapping*>& place : mappings) {
    const Mapping* const mapping = place.load();
    if (mapping == nullptr || !mapping->Has(info->si_addr)) continue;
    const std::string_view text = mapping->lost_text();
    (void)!write(STDERR_FILENO, text.data(), text.size());
    std::_Exit(static_cast<int>(ExitCode::kIo));
  }
  std::signal(signal, SIG_DFL);  // Not ours: the access is repeated, and ends the program.
}

void GuardMappings() {
  static const bool guarded = [] {
    struct sigaction action = {};
    action.sa_sigaction = OnBusError;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    return sigaction(SIGBUS, &action, nullptr) == 0;
  }();
  (void)guarded;
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

}  // namespace

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
  if (begin == MAP_FAILED) {
    return absl::DataLossError(fmt::format("{}: cannot be mapped: {}", path, strerror(errno)));
  }
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
