#include "worker/compute/device_claim.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "absl/status/statusor.h"
#include "common/base/check.h"
#include "common/local/local_socket.h"

namespace slipstream {
namespace {

/// The number of shares of one device: more than the workers of any machine.
constexpr int kSharesMax = 256;

}  // namespace

size_t DeviceClaim::Take(const std::vector<std::string>& names, size_t first) {
  PS_CHECK(!names.empty());
  share_ = FileDescriptor();
  for (int share = 0; share < kSharesMax; ++share) {
    for (size_t i = 0; i < names.size(); ++i) {
      const size_t device = (first + i) % names.size();
      absl::StatusOr<FileDescriptor> taken =
          ListenLocally(fmt::format("slipstream-{}-{}-{}", getuid(), names[device], share));
      if (!taken.ok()) continue;  // Another process has it.
      share_ = *std::move(taken);
      return device;
    }
  }
  return first % names.size();
}

}  // namespace slipstream
