#include "server/metrics/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

#include "common/log/log_sink.h"
#include "common/process/version.h"

namespace slipstream {
namespace {

/// The numbers of /proc/self/stat from the third on: what is before them is the program's name,
/// which may have any characters but ends with the last bracket (man 5 proc).
std::vector<double> ProcessNumbers() {
  std::ifstream file("/proc/self/stat");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream rest(text.substr(name_end + 1));
  std::string state;
  rest >> state;
  return {std::istream_iterator<double>(rest), {}};
}

/// Returns when the system was started, in seconds since 1970; 0 if it does not say.
double BootTime() {
  std::ifstream file("/proc/stat");
  std::string word;
  double seconds = 0;
  while (file >> word) {
    if (word == "btime" && file >> seconds) return seconds;
  }
  return 0;
}

double OpenFiles() {
  std::error_code error;
  const std::filesystem::directory_iterator files("/proc/self/fd", error);
  return error ? 0 : static_cast<double>(std::distance(begin(files), end(files)));
}

void AddStandard(MetricSet& metrics) {
  const std::vector<double> numbers = ProcessNumbers();
  // Numbered as the manual does, where the process' number is the first.
  const auto number = [&](size_t place) {
    return place < numbers.size() + 4 ? numbers[place - 4] : 0;
  };
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
  rlimit files = {};
  getrlimit(RLIMIT_NOFILE, &files);
  metrics.Counter("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.",
                  (number(14) + number(15)) / ticks);
  metrics.Gauge("process_threads", "Number of threads of the process.", number(20));
  metrics.Gauge("process_start_time_seconds",
                "Start time of the process since unix epoch in seconds.",
                BootTime() + number(22) / ticks);
  metrics.Gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.", number(23));
  metrics.Gauge("process_resident_memory_bytes", "Resident memory size in bytes.",
                number(24) * page);
  metrics.Gauge("process_open_fds", "Number of open file descriptors.", OpenFiles());
  metrics.Gauge("process_max_fds", "Maximum number of open file descriptors.",
                static_cast<double>(files.rlim_cur));
}

}  // namespace

void AddProcessMetrics(const ProcessCounts& counts, MetricSet& metrics) {
  metrics.Gauge("build_info", "Always 1: which build this is.", 1,
                {{"version", std::string(kVersion)}, {"protocol", std::to_string(kProtocol)}});
  AddStandard(metrics);
  const LogSink::Counts lines = LogSink::CountsOfProcess();
  for (const auto& [level, count] : lines.by_level) {
    metrics.Counter("log_lines_total", "Lines of the log.", static_cast<double>(count),
                    {{"level", level}});
  }
  metrics.Counter("log_lines_lost_total", "Lines that were left out, as there were too many.",
                  static_cast<double>(lines.left_out));
  metrics.Counter("auth_refusals_total", "Calls that were refused for who made them.",
                  static_cast<double>(counts.refusals));
  for (const auto& [reason, count] : counts.closed) {
    metrics.Counter("connections_closed_total", "Connections that this server has closed.",
                    static_cast<double>(count), {{"reason", reason}});
  }
  if (counts.certificate_ends == absl::InfiniteFuture()) return;
  metrics.Gauge("certificate_expiry_timestamp_seconds", "When the certificate ends.",
                absl::ToDoubleSeconds(counts.certificate_ends - absl::UnixEpoch()));
}

}  // namespace slipstream
