#include "server/http/http_pages.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/alarms/run_alarms.h"
#include "common/base/printable.h"
#include "common/config/server_address.h"
#include "common/json/json_text.h"
#include "common/json/message_json.h"
#include "server/http/page/page.h"
#include "server/metrics/run_metrics.h"
#include "server/metrics/shard_metrics.h"

namespace slipstream {
namespace {

// The method whose callers may read what is answered here.
constexpr char kSameAs[] = "/slipstream.v1.Coordinator/GetStatus";

// A program that scrapes does so more often than that.
constexpr absl::Duration kScrapePause = absl::Minutes(1);
constexpr char kStreamPath[] = "/status/stream";
constexpr char kPaths[] = "/metrics\n/status.json\n/status/stream\n/livez\n/readyz?verbose\n";
constexpr char kPageType[] = "text/html; charset=utf-8";

constexpr char kMetricsType[] = "text/plain; version=0.0.4; charset=utf-8";

bool IsLoopbackHost(const std::string& host) {
  // A browser leaves out port 80.
  for (const std::string& text : {host, host + ":80"}) {
    const std::optional<ServerAddress> address = ParseServerAddress(text);
    if (address.has_value()) return address->IsLoopback();
  }
  return false;
}

const char* NameOf(Alarm::Level level) {
  switch (level) {
    case Alarm::Level::kNote:
      return "note";
    case Alarm::Level::kWarning:
      return "warning";
    case Alarm::Level::kAlarm:
      return "alarm";
  }
  return "";
}

}  // namespace

std::string EventText(const v1::RunStatus& status) {
  auto alarms = nlohmann::ordered_json::array();
  for (const Alarm& alarm : AlarmsOf(status)) {
    alarms.push_back({{"level", NameOf(alarm.level)}, {"text", alarm.text}});
  }
  return fmt::format("event: alarms\ndata: {}\n\ndata: {}\n\n", JsonCompact(alarms),
                     JsonCompact(MessageJson(status)));
}

Readiness ReadinessOf(const ServerFacts& facts) {
  Readiness readiness;
  const auto add = [&readiness](const char* what, const std::string& wrong) {
    readiness.is_ready = readiness.is_ready && wrong.empty();
    readiness.lines += wrong.empty() ? fmt::format("[+]{}\n", what)
                                     : fmt::format("[-]{}: {}\n", what, Printable(wrong));
  };
  // A run goes on while its coordinator is away.
  const bool was_answered = facts.run != 0;
  add("coordinator", was_answered                 ? ""
                     : facts.lost_because.empty() ? "it has not answered yet"
                                                  : facts.lost_because);
  add("servers", facts.phase == Phase::kWaitingForServers ? "the run waits for its servers" : "");
  add("run", facts.phase == Phase::kFailed ? "it has failed: " + facts.failure : "");
  add("process", facts.is_draining ? "it drains" : "");
  return readiness;
}

std::optional<HttpPort::Answer> HttpPages::Refusal(const HttpPort::Request& request) const {
  if (options_.is_loopback_only && !request.host.empty() && !IsLoopbackHost(request.host)) {
    return HttpPort::Answer{
        .status = 421, .text = "this port is for programs of its own machine: ask for localhost\n"};
  }
  const bool is_probe =
      request.path == "/livez" || (request.path == "/readyz" && !request.is_verbose);
  if (options_.access == nullptr || is_probe) return std::nullopt;
  const absl::Status admitted =
      options_.access->Admit(request.uris, request.authorization, kSameAs, "HTTP " + request.path);
  if (admitted.ok()) return std::nullopt;
  return HttpPort::Answer{.status = absl::IsUnauthenticated(admitted) ? 401 : 403,
                          .text = std::string(admitted.message()) + "\n"};
}

HttpPort::Answer HttpPages::Answer(const HttpPort::Request& request) {
  if (std::optional<HttpPort::Answer> refusal = Refusal(request); refusal.has_value()) {
    return *refusal;
  }
  const std::string& path = request.path;
  const bool has_run = options_.status != nullptr;
  if (path == "/livez") return {.text = "ok\n"};
  if (path == "/" && has_run) {
    return {
        .type = kPageType, .text = std::string(RunPage()), .policy = std::string(RunPagePolicy())};
  }
  if (path == "/") {
    return {.text = fmt::format("the page of the run is at the coordinator's HTTP port, which this "
                                "names: psctl status --coordinator {}\n\nHere are:\n{}",
                                options_.coordinator, kPaths)};
  }
  if (path == kStreamPath && has_run) {
    return {.event = [this] { return Kept(kStreamPath, false).text; }};
  }
  for (const char* const kept : {"/metrics", "/readyz", "/status.json", kStreamPath}) {
    if (path == kept) return Kept(path, request.is_verbose);
  }
  return {.status = 404, .text = fmt::format("not found; here are:\n{}", kPaths)};
}

HttpPort::Answer HttpPages::Kept(const std::string& path, bool is_verbose) {
  MutexLock lock(mutex_);
  Page& page = pages_[{path, is_verbose}];
  const absl::Time now = options_.now();
  if (now - page.made > options_.age_max) page = {Make(path, is_verbose), now};
  if (path == "/metrics") scraped_ = page.made;
  return page.answer;
}

bool HttpPages::AwaitsLastScrape() {
  MutexLock lock(mutex_);
  const absl::Time now = options_.now();
  if (!is_over_since_.has_value()) is_over_since_ = now;
  return now - scraped_ < kScrapePause && scraped_ <= *is_over_since_;
}

HttpPort::Answer HttpPages::Make(const std::string& path, bool is_verbose) const {
  if (path == "/metrics") return {.type = kMetricsType, .text = Metrics()};
  if (path == "/readyz") {
    const Readiness readiness = ReadinessOf(options_.facts());
    const char* const text = readiness.is_ready ? "ok\n" : "not ready; /readyz?verbose says why\n";
    return {.status = readiness.is_ready ? 200 : 503, .text = is_verbose ? readiness.lines : text};
  }
  if (options_.status == nullptr) {
    return {.status = 404,
            .text = fmt::format("the coordinator has the status: ask the server of shard 0, {}\n",
                                options_.coordinator)};
  }
  if (path == kStreamPath) return {.text = EventText(options_.status())};
  return {.type = "application/json", .text = JsonText(MessageJson(options_.status()))};
}

std::string HttpPages::Metrics() const {
  const ServerFacts facts = options_.facts();
  MetricSet::Labels labels = {{"run", options_.run_name}};
  // A series that begins before the run has its number would end when it gets it.
  if (facts.run != 0) labels.emplace_back("run_id", fmt::format("{:016x}", facts.run));
  MetricSet metrics(std::move(labels));
  if (options_.status != nullptr) AddRunMetrics(options_.status(), metrics);
  if (facts.shard != nullptr) AddShardMetrics(*facts.shard, metrics);
  if (facts.aggregator != nullptr) AddAggregatorMetrics(*facts.aggregator, metrics);
  const bool is_over = facts.phase == Phase::kFinished || facts.phase == Phase::kFailed;
  metrics.Gauge("run_over", "1 if the run is over, so that this server may end.", is_over ? 1 : 0);
  AddProcessMetrics(facts.counts, metrics);
  return metrics.Text();
}

}  // namespace slipstream
