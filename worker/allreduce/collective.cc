#include "worker/allreduce/collective.h"

#include <fmt/format.h>
#include <gloo/allreduce.h>
#include <gloo/context.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/attr.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <array>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <exception>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include "common/base/check.h"

namespace slipstream {
namespace {

/// IsSame compares numbers in parts of so many bits, whose sums a double holds exactly.
constexpr int kPartBits = 16;
constexpr size_t kParts = 64 / kPartBits;

std::chrono::milliseconds Milliseconds(absl::Duration duration) {
  return std::chrono::milliseconds(absl::ToInt64Milliseconds(duration));
}

/// The meeting place as Gloo wants it. The key of a rank's addresses is its number. Gloo also sets
/// keys with host names, to count the ranks of each machine, which nothing here asks for.
class PlaceStore final : public gloo::rendezvous::Store {
 public:
  explicit PlaceStore(MeetingPlace& place) : place_(place) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    if (RankOf(key).has_value()) Check(place_.Leave(std::string(data.begin(), data.end())));
  }

  std::vector<char> get(const std::string& key) override {
    const std::optional<uint32_t> rank = RankOf(key);
    if (!rank.has_value()) return {};
    const absl::StatusOr<std::string> contact = place_.Await(*rank);
    Check(contact.status());
    return {contact->begin(), contact->end()};
  }

  // The waiting is done in get().
  void wait(const std::vector<std::string>&) override {}

  /// Why the meeting failed; OK if it did not.
  const absl::Status& failure() const { return failure_; }

 private:
  static std::optional<uint32_t> RankOf(const std::string& key) {
    uint32_t rank = 0;
    const char* const end = key.data() + key.size();
    const auto [rest, error] = std::from_chars(key.data(), end, rank);
    return error == std::errc() && rest == end ? std::optional(rank) : std::nullopt;
  }

  void Check(const absl::Status& status) {
    if (status.ok()) return;
    failure_ = status;
    throw std::runtime_error(std::string(status.message()));
  }

  MeetingPlace& place_;
  absl::Status failure_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Collective>> Collective::Connect(const Options& options,
                                                                MeetingPlace& place) {
  PS_CHECK(options.rank < options.ranks);
  // Gloo writes to connections that a lost rank has closed. By default that ends the process.
  std::signal(SIGPIPE, SIG_IGN);
  PlaceStore store(place);
  try {
    gloo::transport::tcp::attr attributes;
    attributes.hostname = options.address;
    std::shared_ptr<gloo::transport::Device> device =
        gloo::transport::tcp::CreateDevice(attributes);
    auto context = std::make_shared<gloo::rendezvous::Context>(static_cast<int>(options.rank),
                                                               static_cast<int>(options.ranks));
    // Gloo waits for a connection five times as long as this says.
    context->setTimeout(Milliseconds(options.connect_timeout / 5));
    context->connectFullMesh(store, device);
    return std::unique_ptr<Collective>(new Collective(options, std::move(context)));
  } catch (const std::exception& error) {
    if (!store.failure().ok()) return store.failure();
    return absl::UnavailableError(
        fmt::format("cannot connect rank {} with the other {} from {}: {}", options.rank,
                    options.ranks - 1, options.address, error.what()));
  }
}

Collective::Collective(const Options& options, std::shared_ptr<gloo::Context> context)
    : options_(options), context_(std::move(context)) {}

Collective::~Collective() = default;

template <typename Value>
absl::Status Collective::SumOf(std::span<Value> values) {
  PS_CHECK(!values.empty());
  try {
    gloo::AllreduceOptions call(context_);
    call.setOutput(values.data(), values.size());
    call.setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<Value>));
    call.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
    call.setTimeout(Milliseconds(options_.call_timeout));
    gloo::allreduce(call);
  } catch (const std::exception& error) {
    return absl::UnavailableError(fmt::format("all-reduce of rank {} of {}: {}", options_.rank,
                                              options_.ranks, error.what()));
  }
  return absl::OkStatus();
}

absl::Status Collective::Sum(std::span<float> values) { return SumOf(values); }

absl::Status Collective::Sum(std::span<double> values) { return SumOf(values); }

absl::StatusOr<bool> Collective::IsSame(uint64_t number) {
  std::array<double, kParts> own;
  for (size_t i = 0; i < kParts; ++i) {
    const uint64_t part = (number >> (kPartBits * i)) & ((uint64_t{1} << kPartBits) - 1);
    own[i] = static_cast<double>(part);
  }
  std::array<double, kParts> sums = own;
  if (absl::Status status = Sum(sums); !status.ok()) return status;
  bool is_same = true;
  for (size_t i = 0; i < kParts; ++i) is_same = is_same && sums[i] == own[i] * options_.ranks;
  return is_same;
}

void Collective::Abort() {
  if (options_.ranks == 1) return;
  try {
    // Gloo has no call for this. But a wait that times out closes all connections of its context
    // and so fails every other call: this one waits for bytes that nobody sends.
    char nothing = 0;
    context_->createUnboundBuffer(&nothing, sizeof(nothing))
        ->waitRecv(nullptr, std::chrono::milliseconds(1));
  } catch (const std::exception&) {
    // The time-out is what was wanted.
  }
}

}  // namespace slipstream
