// The extension module slipstream._core: one worker's session for Python, call by call. The package
// around it (slipstream/) has the interface for users.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "common/json/json_text.h"
#include "common/json/message_json.h"
#include "common/model_file/model_file.h"
#include "common/protocol/batch_ranges.h"
#include "common/rpc/library_settings.h"
#include "worker/python/bindings.h"
#include "worker/python/log_lines.h"
#include "worker/python/session.h"
#include "worker/training/measures.h"

namespace slipstream {
namespace {

/// A tensor's name, its format's name, its shape and its values.
using Stored = std::tuple<std::string, std::string, std::vector<uint64_t>, py::bytes>;

std::vector<StoredTensor> StoredTensors(const std::vector<Stored>& tensors) {
  std::vector<StoredTensor> stored;
  for (const auto& [name, dtype, shape, bytes] : tensors)
    stored.push_back({name, dtype, shape, bytes});
  return stored;
}

/// One worker. Its calls return at once, and a thread of its own does what they ask for, in order;
/// but OnGradient and HasToExchange wait for that thread, and then do it themselves.
class Worker {
 public:
  PendingResult Join(const std::string& coordinator, std::optional<uint32_t> worker,
                     const std::map<std::string, std::string>& files) {
    auto credentials = CredentialsOf(files, CertifiedRole::kWorker, worker);
    Check(credentials.status());
    Session::Options options = {.coordinator = coordinator, .credentials = *credentials};
    if (worker.has_value()) options.worker = WorkerId{*worker};
    return Begin([options](State& state) {
      absl::StatusOr<std::unique_ptr<Session>> session = Session::Join(options, state.interruption);
      if (!session.ok()) return session.status();
      state.session = *std::move(session);
      return absl::OkStatus();
    });
  }

  PendingResult Synchronize(
      const std::vector<std::pair<std::string, std::vector<uint64_t>>>& tensors, uint64_t examples,
      const py::buffer& first, std::vector<std::pair<std::string, uint64_t>> frozen) {
    ModelProposal model = {.examples = examples, .frozen = std::move(frozen)};
    for (const auto& [name, shape] : tensors) Check(model.layout.Append(name, shape));
    std::vector<float> values = CopyOf(first);
    return Begin([model = std::move(model), values = std::move(values)](State& state) {
      return state.session->Synchronize(model, values);
    });
  }

  PendingResult Next() {
    auto work = std::make_shared<std::optional<Session::Work>>();
    const auto value = [work]() -> py::object {
      if (!work->has_value()) return py::none();
      std::vector<std::pair<uint64_t, uint64_t>> ranges;
      for (const BatchRange& range : (*work)->batches)
        ranges.emplace_back(range.first, range.count);
      return py::cast(ranges);
    };
    return Begin(
        [work](State& state) {
          if (absl::Status pushed = state.TakePushFailure(); !pushed.ok()) return pushed;
          absl::StatusOr<std::optional<Session::Work>> next = state.session->Next();
          if (!next.ok()) return next.status();
          *work = *std::move(next);
          return absl::OkStatus();
        },
        value);
  }

  PendingResult BeginPush(uint32_t examples) {
    return Begin([examples](State& state) { return state.session->Begin(examples); });
  }

  void Release(size_t from) {
    (void)Begin([from](State& state) {
      state.session->Release(from);
      return absl::OkStatus();
    });
  }

  PendingResult Skip() {
    return Begin([](State& state) { return state.session->Skip(); });
  }

  /// Begins a push. If it fails, Settle or Next does, whichever comes first.
  void Push(uint32_t examples, std::optional<float> loss, uint64_t label,
            const std::vector<size_t>& absent) {
    Session::Values values = {.examples = examples, .loss = loss, .label = label};
    for (const size_t tensor : absent) values.absent.Add(tensor);
    (void)Begin([values = std::move(values)](State& state) {
      const absl::StatusOr<bool> pushed = state.session->Push(values);
      state.push_failure = pushed.status();
      state.push_counts = pushed.ok() && *pushed;
      return absl::OkStatus();
    });
  }

  /// Waits for the answers to the push before it. Returns whether it counts, and the answers.
  PendingResult Settle() {
    auto result = std::make_shared<PushAnswers>();
    return Begin(
        [result](State& state) {
          absl::Status status = state.TakePushFailure();
          if (status.ok()) status = state.session->Await();
          *result = {state.push_counts, state.session->replies()};
          return status;
        },
        [result] { return ToPython(*result); });
  }

  /// Reads the newest weights into memory of their own.
  PendingResult Read() {
    auto reading = std::make_shared<WeightsReader::Reading>();
    auto values = std::make_shared<ModelMemories::Memory>();
    const auto value = [reading, values] {
      std::vector<uint64_t> versions;
      for (const Version version : reading->versions) versions.push_back(Value(version));
      return py::object(py::make_tuple(versions, Arena{**values, *values}));
    };
    return Begin(
        [values, reading](State& state) {
          *values = state.memories.Take(state.session->layout().parameters());
          absl::StatusOr<WeightsReader::Reading> read = state.session->Read(**values);
          if (!read.ok()) return read.status();
          *reading = *std::move(read);
          return absl::OkStatus();
        },
        value);
  }

  PendingResult Save(const std::string& path, const Arena& weights,
                     const std::vector<Stored>& beside) {
    return Begin([path, weights, beside = StoredTensors(beside)](State& state) {
      Session& session = *state.session;
      const ModelMetadata metadata = {{"run", session.settings().name}};
      return WriteModelFile(path, session.layout(), metadata, weights.values, beside);
    });
  }

  /// Has the run's algorithm decide what local steps come to, which step local_weights(). Returns
  /// whether there is still work at hand.
  PendingResult BeginLocalSteps() {
    return BeginAsking([](Session& session) { return session.BeginLocalSteps(); });
  }

  void EndLocalSteps() {
    (void)Begin([](State& state) {
      if (state.session != nullptr) state.session->EndLocalSteps();
      return absl::OkStatus();
    });
  }

  /// Tells of a gradient before the step: where the values of each tensor are, or 0.
  void OnGradient(const std::vector<uintptr_t>& places) {
    std::vector<const float*> tensors;
    for (const uintptr_t place : places) {
      // Memory of a tensor's, which the package keeps.
      tensors.push_back(
          reinterpret_cast<const float*>(place));  // NOLINT(performance-no-int-to-ptr)
    }
    Session& session = IdleSession();
    const py::gil_scoped_release release;
    Check(session.OnGradient(std::move(tensors)));
  }

  bool HasToExchange() { return IdleSession().has_to_exchange(); }

  PendingResult ExchangeWeights() {
    return Begin([](State& state) { return state.session->ExchangeWeights(); });
  }

  /// Brings the servers' newest weights for the push that follows. Returns whether it is wanted.
  PendingResult FetchForPush() {
    return BeginAsking([](Session& session) { return session.FetchForPush(); });
  }

  /// Returns whether the run is over; if not, an evaluation was ordered.
  PendingResult Finish() {
    return BeginAsking([](Session& session) { return session.Finish(); });
  }

  bool IsOrdered() { return session().is_ordered(); }

  /// Reads the weights that are to be measured, and returns them.
  PendingResult BeginEvaluation() {
    auto values = std::make_shared<std::shared_ptr<std::vector<float>>>();
    return Begin(
        [values](State& state) {
          const absl::Status status = state.session->BeginEvaluation();
          *values = state.session->measured_weights();
          return status;
        },
        [values] {
          return py::cast(Arena{**values, *values});
        });
  }

  void OnMeasured(uint64_t examples) { session().OnMeasured(examples); }

  PendingResult EndEvaluation(double loss, std::optional<double> accuracy, uint64_t examples,
                              const std::string& directory, const std::vector<Stored>& beside) {
    const TestMeasures measures = {.loss = loss, .accuracy = accuracy};
    return Begin([measures, examples, directory, beside = StoredTensors(beside)](State& state) {
      return state.session->EndEvaluation(measures, examples, directory, beside);
    });
  }

  void Leave(const std::string& failure) {
    operated_.End([failure](State& state) {
      if (state.session != nullptr) state.session->Leave(failure);
      return absl::OkStatus();
    });
  }

  PendingResult EndTraining() {
    return Begin([](State& state) { return state.session->EndTraining(); });
  }
  Arena weights() { return {session().weights()}; }
  Arena local_weights() { return {session().local_weights()}; }
  Arena values() { return {session().values()}; }

  /// Returns the positions of a mini-batch's examples, as the bytes of unsigned 32-bit numbers.
  py::bytes ExamplesOf(uint64_t batch) {
    const std::span<const uint32_t> examples = session().ExamplesOf(batch);
    return {reinterpret_cast<const char*>(examples.data()), examples.size_bytes()};
  }

  /// Returns what Settle would, after Next or Finish, which have waited.
  py::object Result() { return ToPython({operated_.state()->push_counts, session().replies()}); }

  py::dict Settings() {
    const RunSpec& settings = session().settings();
    const AlgorithmRow& algorithm = RowOf(settings.worker.algorithm);
    py::dict facts;
    facts["name"] = settings.name;
    facts["seed"] = settings.seed;
    facts["workers"] = settings.cluster.workers;
    facts["servers"] = session().servers();
    facts["policy"] = std::string(RowOf(settings.consistency.policy).name);
    facts["batch_size"] = settings.training.batch_size;
    facts["epochs"] = settings.training.epochs;
    facts["own_work"] = settings.training.work == TrainingSpec::Work::kOwn;
    facts["algorithm"] = std::string(algorithm.name);
    facts["local_steps"] = algorithm.has_local_weights;
    facts["keeps_weights"] = algorithm.keeps_weights;
    facts["lands_apart"] = settings.worker.lands_apart();
    facts["moving_rate"] = MovingRateOf(settings);
    facts["pushes_gradients"] = algorithm.pushes == PushKind::kGradient;
    facts["publishes"] = algorithm.pushes == PushKind::kValues;
    facts["steps"] = settings.worker.quantum();
    facts["clip_value"] = settings.optimizer.clip_value;
    facts["clip_norm"] = settings.optimizer.clip_norm;
    facts["measured"] = settings.evaluation.by == EvaluationSpec::By::kWorkers;
    facts["lease_seconds"] = absl::ToDoubleSeconds(settings.cluster.lease);
    return facts;
  }

  std::pair<uint32_t, uint64_t> Identity() {
    const auto& identity = session().identity();
    return {Value(identity.worker), Value(identity.incarnation)};
  }

 private:
  struct State {
    void Release() { session.reset(); }
    absl::Status TakePushFailure() { return std::exchange(push_failure, absl::OkStatus()); }

    Interruption interruption;
    std::unique_ptr<Session> session;
    ModelMemories memories{2};  // For what is read: the last may still be in use.

    // The result of the last push: operations use it, and Result does between them.
    absl::Status push_failure;
    bool push_counts = false;
  };

  struct PushAnswers {
    bool counts = false;
    std::vector<PushReply> replies;
  };

  static py::object ToPython(const PushAnswers& answers) {
    py::list replies;
    for (const PushReply& reply : answers.replies) {
      replies.append(
          py::make_tuple(std::string(Name(reply.outcome)), Value(reply.version), reply.staleness));
    }
    return py::make_tuple(answers.counts, replies);
  }

  static std::vector<float> CopyOf(const py::buffer& buffer) {
    const py::buffer_info info = buffer.request();
    CheckFloats(info);
    const auto* begin = static_cast<const float*>(info.ptr);
    return {begin, begin + info.size};
  }

  static void CheckFloats(const py::buffer_info& info) {
    py::ssize_t stride = info.itemsize;
    bool is_contiguous = true;
    for (size_t i = info.shape.size(); i-- > 0;) {
      is_contiguous = is_contiguous && (info.shape[i] <= 1 || info.strides[i] == stride);
      stride *= info.shape[i];
    }
    const bool is_float = info.format == "f" || info.format == "<f" || info.format == "=f";
    if (is_float && is_contiguous) return;
    throw Failure(absl::InvalidArgumentError(
        "values are 32-bit floating-point numbers, one after another; this is another type, or an "
        "array with gaps"));
  }

  /// The share of their distance by which one exchange draws the weights of a worker that keeps
  /// them, and the servers', to each other.
  static double MovingRateOf(const RunSpec& settings) {
    if (!RowOf(settings.worker.algorithm).keeps_weights) return 0;
    return settings.worker.parameters["elasticity"] / settings.cluster.workers;
  }

  /// Returns the session, of a worker that is in no operation.
  Session& session() {
    const std::shared_ptr<State>& state = operated_.state();
    if (state->session == nullptr) {
      throw Failure(absl::FailedPreconditionError("the worker has not joined a run"));
    }
    return *state->session;
  }

  /// Waits until the worker is in no operation, and returns the session.
  Session& IdleSession() {
    operated_.AwaitIdle();
    return session();
  }

  PendingResult Begin(const std::function<absl::Status(State&)>& work,
                      std::function<py::object()> value = None) {
    return operated_.Begin(work, std::move(value));
  }

  /// Begins what answers with yes or no.
  PendingResult BeginAsking(const std::function<absl::StatusOr<bool>(Session&)>& ask) {
    auto answer = std::make_shared<bool>(false);
    return Begin(
        [ask, answer](State& state) {
          const absl::StatusOr<bool> answered = ask(*state.session);
          if (answered.ok()) *answer = *answered;
          return answered.status();
        },
        [answer] { return py::object(py::bool_(*answer)); });
  }

  Operated<State> operated_;
};

std::string StatusJson(const std::string& coordinator,
                       const std::map<std::string, std::string>& files) {
  auto credentials = CredentialsOf(files, CertifiedRole::kOperator, std::nullopt);
  Check(credentials.status());
  absl::StatusOr<v1::RunStatus> status;
  {
    const py::gil_scoped_release release;
    const CoordinatorClient client(coordinator, {.credentials = *credentials},
                                   [](absl::Duration) { return false; });
    status = client.GetStatus();
  }
  Check(status.status());
  return JsonCompact(MessageJson(*status));
}

/// Has each failure raised as the exception that the package makes of its code and its text.
void RaiseBy(const py::function& exception_of) {
  static PyObject* maker = nullptr;  // Kept for as long as the process lives.
  Py_XDECREF(maker);
  maker = exception_of.inc_ref().ptr();
  static bool is_registered = false;
  if (std::exchange(is_registered, true)) return;
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const Failure& error) {
      const auto make = py::reinterpret_borrow<py::function>(maker);
      const py::object exception = make(error.code(), error.what());
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
    }
  });
}

}  // namespace
}  // namespace slipstream

PYBIND11_MODULE(_core, module) {
  using namespace slipstream;  // NOLINT(google-build-using-namespace): pybind11's macro is outside.
  module.doc() = "One worker of a Slipstream run; the package slipstream is its interface.";
  KeepLogLines();
  TakeLibraryLogs();
  UseSystemResolver();
  TuneLocks();
  KeepFreedMemory();
  py::class_<PendingResult>(module, "Operation")
      .def("wait", &PendingResult::Wait, py::arg("seconds"))
      .def("value", &PendingResult::Value);
  py::class_<Arena>(module, "Arena", py::buffer_protocol()).def_buffer([](Arena& arena) {
    return py::buffer_info(arena.values.data(), static_cast<py::ssize_t>(arena.values.size()));
  });
  py::class_<Worker>(module, "Worker")
      .def(py::init<>())
      .def("join", &Worker::Join)
      .def("synchronize", &Worker::Synchronize)
      .def("next", &Worker::Next)
      .def("begin_push", &Worker::BeginPush)
      .def("release", &Worker::Release)
      .def("push", &Worker::Push)
      .def("skip", &Worker::Skip)
      .def("settle", &Worker::Settle)
      .def("read", &Worker::Read)
      .def("save", &Worker::Save)
      .def("fetch_for_push", &Worker::FetchForPush)
      .def("begin_local_steps", &Worker::BeginLocalSteps)
      .def("end_local_steps", &Worker::EndLocalSteps)
      .def("on_gradient", &Worker::OnGradient)
      .def("has_to_exchange", &Worker::HasToExchange)
      .def("exchange_weights", &Worker::ExchangeWeights)
      .def("finish", &Worker::Finish)
      .def("is_ordered", &Worker::IsOrdered)
      .def("begin_evaluation", &Worker::BeginEvaluation)
      .def("on_measured", &Worker::OnMeasured)
      .def("end_evaluation", &Worker::EndEvaluation)
      .def("leave", &Worker::Leave)
      .def("end_training", &Worker::EndTraining)
      .def("weights", &Worker::weights, py::keep_alive<0, 1>())
      .def("local_weights", &Worker::local_weights, py::keep_alive<0, 1>())
      .def("values", &Worker::values, py::keep_alive<0, 1>())
      .def("examples_of", &Worker::ExamplesOf)
      .def("result", &Worker::Result)
      .def("settings", &Worker::Settings)
      .def("identity", &Worker::Identity);
  DefineReader(module);
  module.def("raise_by", &RaiseBy);
  module.def("status_json", &StatusJson);
  module.def("take_log_lines", [] {
    py::list lines;
    for (const LoggedLine& line : TakeLogLines()) {
      // A peer's text may have any bytes.
      const auto text = py::reinterpret_steal<py::str>(PyUnicode_DecodeUTF8(
          line.text.data(), static_cast<py::ssize_t>(line.text.size()), "replace"));
      lines.append(py::make_tuple(line.level, text));
    }
    return lines;
  });
}
