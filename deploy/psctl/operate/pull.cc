#include "deploy/psctl/operate/pull.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/duration_text.h"
#include "common/base/printable.h"
#include "common/layout/tensor_layout.h"
#include "common/log/logging.h"
#include "common/model_file/model_file.h"
#include "common/model_file/weights_digest.h"
#include "common/process/exit_code.h"
#include "common/process/output_text.h"
#include "common/process/steady_time.h"
#include "common/process/stop_signal.h"
#include "common/process/version.h"
#include "deploy/psctl/complaint.h"
#include "deploy/psctl/operator_client.h"
#include "deploy/psctl/output_file.h"
#include "worker/client/cancel_switch.h"
#include "worker/client/subscription.h"

namespace slipstream {
namespace {

// This is long enough for a coordinator that is just starting.
constexpr absl::Duration kProgressTimeout = absl::Seconds(2);

// The time within which a signal is noticed while servers are asked.
constexpr absl::Duration kSignalInterval = absl::Milliseconds(50);

/// Throws a switch once a signal asks to stop or a steady time has come.
///
/// Thread-safe: const after construction.
class SwitchThrower {
 public:
  /// Everything that is borrowed must outlive this object.
  SwitchThrower(const StopSignal& stop, absl::Time deadline, CancelSwitch& cancel)
      : thread_([&stop, deadline, &cancel](const std::stop_token& end) {
          while (!end.stop_requested()) {
            const absl::Duration left = deadline - SteadyNow();
            if (left > absl::ZeroDuration() && !stop.WaitFor(std::min(left, kSignalInterval))) {
              continue;
            }
            cancel.Throw();
            return;
          }
        }) {}

 private:
  std::jthread thread_;
};

/// One state of a run's model.
struct PulledModel {
  TensorLayout layout;
  std::vector<float> weights;
  Subscription::State state;

  /// Returns the version as people know it: the publisher's number, else the count of server 0.
  uint64_t version() const { return state.label > 0 ? state.label : Value(state.versions.front()); }

  std::vector<uint64_t> versions() const {
    std::vector<uint64_t> numbers;
    for (const Version version : state.versions) numbers.push_back(Value(version));
    return numbers;
  }
};

ModelMetadata DescribePulled(const std::string& run, const PulledModel& model) {
  ModelMetadata metadata = {
      {"written_by", fmt::format("slipstream {}", kVersion)},
      {"run", run},
      {"version", fmt::format("{}", model.version())},
      {"versions", fmt::format("{}", fmt::join(model.versions(), ","))},
      {"whole", model.state.stamp.has_value() ? "true" : "false"},
      {"examples", fmt::format("{}", model.state.examples)},
      {"lag", fmt::format("{}", model.state.lag)},
      {kWeightsSha256, WeightsSha256(model.weights)},
  };
  if (model.state.label > 0) metadata.emplace("label", fmt::format("{}", model.state.label));
  return metadata;
}

/// Returns the line that is printed at the end.
std::string PulledText(const std::string& path, const std::string& run, const PulledModel& model) {
  const size_t tensors = model.layout.tensors().size();
  const std::string version =
      model.state.stamp.has_value()
          ? fmt::format("version {}", model.version())
          : fmt::format("versions {} (the servers are not in step: each has its own)",
                        fmt::join(model.versions(), ","));
  return fmt::format("{}: {} tensor{}, {} values, run {}, {}, lag {}\n", path, tensors,
                     tensors == 1 ? "" : "s", model.weights.size(), run, version, model.state.lag);
}

/// One run of `psctl pull`.
class Pull {
 public:
  Pull(const PullArguments& arguments, std::shared_ptr<grpc::ChannelCredentials> credentials,
       const StopSignal& stop)
      : arguments_(arguments),
        credentials_(std::move(credentials)),
        deadline_(SteadyNow() + arguments.timeout),
        stop_(stop) {}

  int Run() {
    // The status has the run's name, and its failures are explained.
    const absl::StatusOr<v1::RunStatus> status =
        OperatorClient(arguments_.coordinator, credentials_)
            .GetStatus(std::min(arguments_.timeout, kProgressTimeout), IfRefused::kWait);
    if (stop_.stopped()) return stop_.ExitStatus();
    if (!status.ok()) return EndWithAdvice(status.status());
    run_ = Printable(status->name());
    if (status->phase() < v1::TRAINING) {
      WriteToStderr(fmt::format("psctl: the run {} has no weights yet; waiting for {} at most\n",
                                run_, DurationText(arguments_.timeout)));
    }
    const absl::StatusOr<PulledModel> model = Take();
    if (absl::IsCancelled(model.status()) && stop_.stopped()) return stop_.ExitStatus();
    if (!model.ok()) return EndWithAdvice(model.status());
    if (absl::Status free = CheckOutputFile(arguments_.output, arguments_.force); !free.ok()) {
      return EndWithAdvice(free);  // It has come while this waited.
    }
    const absl::Status written = WriteModelFile(arguments_.output, model->layout,
                                                DescribePulled(run_, *model), model->weights);
    if (!written.ok()) return EndWithAdvice(written);
    WriteToStdout(PulledText(arguments_.output, run_, *model));
    return static_cast<int>(ExitCode::kOk);
  }

 private:
  /// Returns the newest state. CANCELLED after a signal; FAILED_PRECONDITION if the time is over.
  absl::StatusOr<PulledModel> Take() {
    CancelSwitch cancel;
    Subscription subscription(
        {.coordinator = arguments_.coordinator, .name = "psctl-pull", .credentials = credentials_},
        [this](absl::Duration wait) { return Sleep(wait); }, cancel);
    const SwitchThrower thrower(stop_, deadline_, cancel);
    if (absl::Status connected = subscription.Connect(); !connected.ok()) {
      return Cause(connected,
                   "has no model: no worker has named its tensors; start workers, or wait longer");
    }
    PulledModel model = {.layout = subscription.layout(), .weights = {}, .state = {}};
    model.weights.resize(model.layout.parameters());
    absl::StatusOr<std::optional<Subscription::State>> state = subscription.Next(model.weights);
    if (!state.ok()) {
      return Cause(state.status(),
                   "has not sent all weights: its first ones may still be missing, or many are "
                   "on their way; wait longer");
    }
    if (!state->has_value()) {
      return absl::NotFoundError(fmt::format(
          "the run {} at {} is over, and no weights were published", run_, arguments_.coordinator));
    }
    model.state = **std::move(state);
    return model;
  }

  /// Waits for `wait` and returns true; returns false early after a signal or at the deadline.
  bool Sleep(absl::Duration wait) const {
    const absl::Duration left = deadline_ - SteadyNow();
    return !stop_.WaitFor(std::min(wait, left)) && SteadyNow() < deadline_;
  }

  /// Returns the reason of a failure. `state` describes the run if the time is over.
  absl::Status Cause(const absl::Status& failure, const std::string& state) const {
    if (!absl::IsCancelled(failure) || stop_.stopped()) return failure;
    return absl::FailedPreconditionError(fmt::format("after {} the run {} at {} {} (--timeout)",
                                                     DurationText(arguments_.timeout), run_,
                                                     arguments_.coordinator, state));
  }

  // Constant after the status has come.
  const PullArguments& arguments_;
  const std::shared_ptr<grpc::ChannelCredentials> credentials_;
  const absl::Time deadline_;
  const StopSignal& stop_;
  std::string run_;
};

}  // namespace

int PullCommand(const PullArguments& arguments) {
  const StopSignal stop;
  if (absl::Status usable = CheckOutputFile(arguments.output, arguments.force); !usable.ok()) {
    return EndWithAdvice(usable);
  }
  const auto credentials = PsctlCredentials(arguments.security);
  if (!credentials.ok()) return EndWithAdvice(credentials.status());
  // The client's warnings, such as those about a server that does not answer, go to stderr.
  StartLogging({.role = "psctl", .number = std::nullopt}, LogSpec::Level::kWarning,
               LogSpec::Format::kText);
  return Pull(arguments, *credentials, stop).Run();
}

}  // namespace slipstream
