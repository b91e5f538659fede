#ifndef SLIPSTREAM_SERVER_AGGREGATOR_SHARD_UPLINKS_H_
#define SLIPSTREAM_SERVER_AGGREGATOR_SHARD_UPLINKS_H_

#include <grpcpp/security/credentials.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "common/settings/run_spec.h"
#include "server/aggregator/uplink.h"
#include "worker/client/cancel_switch.h"
#include "worker/client/server_addresses.h"
#include "worker/client/shard_options.h"

namespace slipstream {

/// Makes uplinks over gRPC. Each has a connection of its own, on which it introduces itself as the
/// aggregator. Composites and the weights of their answers travel unencoded, so that the workers
/// get the bits that the shard would have sent them.
///
/// Thread-safe: guarded by its own mutex.
class ShardUplinks final : public Uplinks {
 public:
  /// A shard that cannot be reached for this long, or that answers RETRY_LATER for this long, is
  /// given up. The workers then reach it themselves, or find that it is gone.
  static constexpr absl::Duration kGiveUpAfter = absl::Seconds(5);

  struct Options {
    RunSpec run;
    ShardId shard{};
    uint32_t group = 0;

    /// The credentials by which the aggregator identifies itself over TCP.
    std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  };

  /// Returns for how long a run's aggregators try: kGiveUpAfter; but as long as a worker would,
  /// where a server may come back and the bits of the result depend on which pushes are combined.
  static absl::Duration PatienceIn(const RunSpec& run);

  explicit ShardUplinks(Options options) : options_(std::move(options)) {}

  void Follow(const std::string& address) override { addresses_.Note(options_.shard, address); }
  std::unique_ptr<Uplink> Make(const std::string& address, uint64_t run,
                               const ShardMap& map) override;
  void Stop() override;

 private:
  ShardOptions OptionsOf(uint64_t run, const ShardMap& map) const;

  /// Waits, or returns false once the uplinks are stopped.
  bool Pause(absl::Duration duration);

  const Options options_;
  ServerAddresses addresses_;
  CancelSwitch cancel_;
  Mutex mutex_;
  CondVar stopping_;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_AGGREGATOR_SHARD_UPLINKS_H_
