#include "deploy/psctl/compare/run_record.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "common/config/run_config.h"
#include "common/settings/known_examples.h"
#include "deploy/psctl/compare/summary_values.h"

namespace slipstream {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// Returns OK if `directory` may be a run directory, and else NOT_FOUND with the reason.
absl::Status CheckDirectory(const std::string& directory) {
  std::error_code error;
  const fs::file_status status = fs::status(directory, error);
  if (!fs::exists(status)) {
    return absl::NotFoundError(fmt::format("{}: there is no such run directory", directory));
  }
  const fs::path path(directory);
  if (!fs::is_directory(status)) {
    const fs::path parent = path.has_parent_path() ? path.parent_path() : ".";
    const bool is_in_one = fs::exists(parent / "run.yaml", error);
    return absl::NotFoundError(fmt::format(
        "{} is a file; name a run directory{}", directory,
        is_in_one ? ", as " + parent.string() : ", as psctl run leaves it under runs/"));
  }
  if (!fs::exists(path / "run.yaml", error)) {
    return absl::NotFoundError(
        fmt::format("{} is no run directory: it has no run.yaml; psctl run leaves its "
                    "directories under runs/",
                    directory));
  }
  return absl::OkStatus();
}

/// Returns the phase in the last line of metrics.jsonl; empty if there is none.
std::string LastPhase(const std::string& directory) {
  const absl::StatusOr<std::string> metrics = ReadMetrics(directory);
  if (!metrics.ok()) return "";
  const size_t end = metrics->find_last_not_of('\n');
  if (end == std::string::npos) return "";
  const size_t begin = metrics->rfind('\n', end) + 1;  // npos + 1 is 0.
  return TextAt(ParseObject(std::string_view(*metrics).substr(begin, end + 1 - begin)), "/phase");
}

void NoteDivergence(const Json& summary, RunRecord& record) {
  record.divergence = {.epoch = CountAt(summary, "/divergence/epoch"),
                       .updates = CountAt(summary, "/divergence/updates")};
  const std::optional<KnownExamples> known = FindKnownExamples(record.settings.data.format);
  std::optional<double>& accuracy = record.figures[kAccuracyFigure];
  const bool has_classes = record.settings.data.from == SuppliedBy::kSettings &&
                           known.has_value() &&
                           record.settings.model.loss == ModelSpec::Loss::kCrossEntropy;
  if (accuracy.has_value() || !has_classes) return;
  accuracy = 1.0 / known->classes;
}

/// Returns the failure for a run without a summary, with the facts that its directory has.
absl::Status NoSummary(const std::string& directory) {
  const std::string phase = LastPhase(directory);
  std::string known = "it has told no figures";
  if (phase == "FAILED") known = "it has failed";
  if (!phase.empty() && phase != "FAILED") {
    known = fmt::format("it still goes on, or was ended in phase {}", phase);
  }
  return absl::FailedPreconditionError(fmt::format(
      "{0} has no summary.json, so its run has not finished: {1}; {0}/logs may say more", directory,
      known));
}

}  // namespace

absl::StatusOr<RunRecord> ParseRunRecord(const std::string& directory, const RunSpec& settings,
                                         std::string_view summary) {
  const Json json = ParseObject(summary);
  if (json.is_null()) {
    return absl::DataLossError(fmt::format("{}/summary.json is no JSON object", directory));
  }
  RunRecord record = {.directory = directory,
                      .settings = settings,
                      .ended_by = TextAt(json, "/ended_by"),
                      .figures = {},
                      .staleness = CountsAt(json, "/staleness/histogram"),
                      .divergence = std::nullopt};
  const bool failed = !TextAt(json, "/error").empty() || !TextAt(json, "/failure").empty();
  if (record.ended_by.empty() && failed) record.ended_by = "failed";
  for (size_t i = 0; i < kRunFigures.size(); ++i) {
    record.figures[i] = NumberAt(json, kRunFigures[i].place);
  }
  if (record.ended_by == "diverged") NoteDivergence(json, record);
  return record;
}

std::string RunRecord::EndText() const {
  if (divergence.has_value()) return fmt::format("diverged in epoch {}", divergence->epoch);
  return ended_by.empty() ? "-" : ended_by;
}

absl::StatusOr<RunRecord> ReadRunRecord(const std::string& directory) {
  if (absl::Status status = CheckDirectory(directory); !status.ok()) return status;
  const absl::StatusOr<RunSpec> settings = ToStatusOr(LoadRunConfig(directory + "/run.yaml"));
  if (!settings.ok()) return settings.status();
  std::error_code error;
  const std::string path = directory + "/summary.json";
  if (!fs::exists(path, error)) return NoSummary(directory);
  const absl::StatusOr<std::string> summary = ReadText(path);
  if (!summary.ok()) return summary.status();
  return ParseRunRecord(directory, *settings, *summary);
}

absl::StatusOr<std::string> ReadText(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(fmt::format("cannot read {}: {}", path, strerror(errno)));
  return std::string(std::istreambuf_iterator<char>(file), {});
}

absl::StatusOr<std::string> ReadMetrics(const std::string& directory) {
  return ReadText(directory + "/metrics.jsonl");
}

}  // namespace slipstream
