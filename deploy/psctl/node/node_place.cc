#include "deploy/psctl/node/node_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace slipstream {
namespace {

using Environment = std::map<std::string, std::string>;

/// A program that starts processes, and the variables in which it tells them who they are.
struct Launcher {
  const char* name;
  const char* rank;
  const char* size;  // Empty: it does not tell.

  /// A variable that is there, too, if `rank` is the launcher's; empty if none is needed. Without
  /// it, `hint` says what to do, or the launcher is passed over if that is empty.
  const char* sign;
  const char* hint;

  const char* job;
  const char* attempt;
};

// An inner one comes before those by which it may have been started.
constexpr std::array<Launcher, 5> kLaunchers = {{
    {"torchrun", "RANK", "WORLD_SIZE", "MASTER_ADDR", "", "TORCHELASTIC_RUN_ID",
     "TORCHELASTIC_RESTART_COUNT"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "", "", "SLURM_JOB_ID",
     "PMIX_NAMESPACE"},
    {"PMI", "PMI_RANK", "PMI_SIZE", "", "", "SLURM_JOB_ID", "SLURM_RESTART_COUNT"},
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_ID",
     "this is the batch script itself: start psctl node by srun", "SLURM_JOB_ID",
     "SLURM_RESTART_COUNT"},
    {"Kubernetes", "JOB_COMPLETION_INDEX", "", "", "", "", ""},
}};

std::optional<std::string> Find(const Environment& environment, const char* name) {
  const auto found = environment.find(name);
  if (found == environment.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

absl::StatusOr<uint32_t> Number(const char* name, const std::string& text) {
  uint32_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec == std::errc() && parsed.ptr == text.data() + text.size()) return number;
  return absl::InvalidArgumentError(fmt::format("{}={} is no number", name, text));
}

/// Returns `text` as a part of a file's name.
std::string NamePart(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return std::isalnum(c) == 0 && c != '-' && c != '.'; }, '-');
  return text;
}

const Launcher* FindLauncher(const Environment& environment) {
  for (const Launcher& launcher : kLaunchers) {
    if (!Find(environment, launcher.rank)) continue;
    const bool has_sign = *launcher.sign == '\0' || Find(environment, launcher.sign).has_value();
    if (has_sign || *launcher.hint != '\0') return &launcher;
  }
  return nullptr;
}

absl::StatusOr<uint32_t> SizeOf(const Launcher& launcher, const Environment& environment) {
  if (*launcher.size == '\0') {
    return absl::InvalidArgumentError(fmt::format(
        "{} says which node this is ({}), and not how many there are: say --size NUMBER",
        launcher.name, launcher.rank));
  }
  const auto size = Find(environment, launcher.size);
  if (size) return Number(launcher.size, *size);
  return absl::InvalidArgumentError(
      fmt::format("{} says which node this is ({}), and {} is missing: say --size NUMBER",
                  launcher.name, launcher.rank, launcher.size));
}

absl::Status Fill(const Launcher& launcher, const Environment& environment, const PlaceFlags& flags,
                  NodePlace& place) {
  if (*launcher.hint != '\0' && !Find(environment, launcher.sign)) {
    return absl::InvalidArgumentError(launcher.hint);
  }
  const auto rank = Number(launcher.rank, *Find(environment, launcher.rank));
  if (!rank.ok()) return rank.status();
  place.rank = flags.rank.value_or(*rank);
  const absl::StatusOr<uint32_t> size = flags.size ? *flags.size : SizeOf(launcher, environment);
  if (!size.ok()) return size.status();
  place.size = *size;
  place.source = launcher.name;
  const auto job = Find(environment, launcher.job);
  if (job && *job != "none") place.job = NamePart(*job);  // torchrun's, where none is given.
  if (const auto attempt = Find(environment, launcher.attempt)) place.attempt = NamePart(*attempt);
  // A job may start several steps, one after another.
  const auto step = Find(environment, "SLURM_STEP_ID");
  if (place.job == Find(environment, "SLURM_JOB_ID") && step && *step != "0") {
    place.attempt += "." + NamePart(*step);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<NodePlace> FindNodePlace(const Environment& environment, const PlaceFlags& flags) {
  NodePlace place;
  const Launcher* const launcher = FindLauncher(environment);
  if (flags.rank && flags.size) {
    place = {.rank = *flags.rank, .size = *flags.size, .source = "--rank and --size"};
    place.attempt = NamePart(Find(environment, "SLURM_RESTART_COUNT").value_or(place.attempt));
  } else if (launcher != nullptr) {
    if (absl::Status filled = Fill(*launcher, environment, flags, place); !filled.ok()) {
      return filled;
    }
  } else {
    return absl::InvalidArgumentError(fmt::format(
        "{}: start psctl node by srun, mpirun or torchrun, or say --rank NUMBER --size NUMBER",
        flags.rank   ? "--rank says which node this is, and nothing how many there are"
        : flags.size ? "--size says how many nodes there are, and nothing which one this is"
                     : "nothing says which node this is"));
  }
  if (!flags.attempt.empty()) place.attempt = NamePart(flags.attempt);
  if (place.size == 0 || place.rank >= place.size) {
    return absl::InvalidArgumentError(
        fmt::format("{} says that this is node {} of {}; nodes count from 0", place.source,
                    place.rank, place.size));
  }
  return place;
}

}  // namespace slipstream
