#ifndef SLIPSTREAM_SERVER_HTTP_HTTP_PAGES_H_
#define SLIPSTREAM_SERVER_HTTP_HTTP_PAGES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/protocol/view.h"
#include "proto/status.pb.h"
#include "server/http/http_port.h"
#include "server/listen/access.h"
#include "server/metrics/process_metrics.h"

namespace slipstream {

/// The facts that a server knows without asking its shard, the coordinator or the disk.
struct ServerFacts {
  uint64_t run = 0;  // 0 before the coordinator has answered.
  Phase phase = Phase::kWaitingForServers;
  std::string failure;  // Why the run has failed; empty if it has not.

  /// Why the coordinator cannot be reached; empty if it can.
  std::string lost_because;
  bool is_draining = false;

  /// The last report of the shard, or of the aggregator, to the coordinator; null before the first.
  std::shared_ptr<const v1::ShardStatus> shard;
  std::shared_ptr<const v1::AggregatorStatus> aggregator;
  ProcessCounts counts;
};

/// Returns whether workers may come to the server, with a line for each thing that this depends on:
/// "[+]coordinator" if it is right, and else "[-]coordinator: " with the reason.
struct Readiness {
  bool is_ready = true;
  std::string lines;
};
Readiness ReadinessOf(const ServerFacts& facts);

/// Returns two events: `alarms` with what AlarmsOf says of the status, and a message with the
/// status as JSON on one line.
std::string EventText(const v1::RunStatus& status);

/// Answers the requests that come to a server's HTTP port:
///
/// - `/livez`: 200 as long as the process answers.
/// - `/readyz`: 200 if workers may come, else 503; with `?verbose`, why.
/// - `/metrics`: for Prometheus, the figures of this server, and where the coordinator is, of the
///   run.
/// - `/`: a page that shows the run to people, where the coordinator is.
/// - `/status.json`: the status of the run, where the coordinator is.
/// - `/status/stream`: the same again and again, as server-sent events (EventText).
///
/// An answer may be as old as Options::age_max: however many ask, it is made once. Over TLS,
/// whoever may call GetStatus may read all; probes, which have no certificate, the first two
/// without reasons.
///
/// Thread-safe: guarded by its own mutex.
class HttpPages {
 public:
  struct Options {
    std::string run_name;
    std::function<ServerFacts()> facts;

    /// Returns the status of the run; null but where the coordinator is.
    std::function<v1::RunStatus()> status;

    /// Where the coordinator is, for those who look for it here.
    std::string coordinator;

    /// Decides who may read; null if everybody may. Must outlive this object.
    Access* access = nullptr;

    /// Whether only this machine can connect. Then a page from elsewhere, whose name was made to
    /// stand for this machine, must not read the answers: requests have to name it by loopback.
    bool is_loopback_only = false;
    std::function<absl::Time()> now;
    absl::Duration age_max = absl::Milliseconds(250);
  };

  explicit HttpPages(Options options) : options_(std::move(options)) {}

  HttpPort::Answer Answer(const HttpPort::Request& request);

  /// Returns whether the figures were asked for in the last minute, and not since the run was over,
  /// as which it counts from the first call on.
  bool AwaitsLastScrape();

 private:
  struct Page {
    HttpPort::Answer answer;
    absl::Time made = absl::InfinitePast();
  };

  std::optional<HttpPort::Answer> Refusal(const HttpPort::Request& request) const;
  /// Returns the answer for a path that has one, made now or kept.
  HttpPort::Answer Kept(const std::string& path, bool is_verbose);
  HttpPort::Answer Make(const std::string& path, bool is_verbose) const;
  std::string Metrics() const;

  const Options options_;  // Constant after construction.

  Mutex mutex_;
  // By path, and whether it is asked verbosely, of those that exist.
  std::map<std::pair<std::string, bool>, Page> pages_ ABSL_GUARDED_BY(mutex_);
  absl::Time scraped_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  std::optional<absl::Time> is_over_since_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_HTTP_HTTP_PAGES_H_
