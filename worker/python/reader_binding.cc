// The class Reader of the extension module: a subscription to a run's versions.

#include <pybind11/stl.h>

#include "worker/client/subscription.h"
#include "worker/python/bindings.h"
#include "worker/training/interruption.h"

namespace slipstream {
namespace {

/// A reader. Its calls return at once, and a thread of its own does what they ask for, in order.
class Reader {
 public:
  PendingResult Connect(const std::string& coordinator, const std::string& name,
                        std::optional<uint64_t> lag_max,
                        const std::map<std::string, std::string>& files) {
    auto credentials = CredentialsOf(files, CertifiedRole::kReader, std::nullopt);
    Check(credentials.status());
    Subscription::Options options = {
        .coordinator = coordinator, .name = name, .lag_max = lag_max, .credentials = *credentials};
    return operated_.Begin(
        [options](State& state) {
          Interruption& interruption = state.interruption;
          state.subscription = std::make_unique<Subscription>(
              options, [&interruption](absl::Duration wait) { return interruption.Sleep(wait); },
              interruption.cancel_switch());
          return state.subscription->Connect();
        },
        [state = operated_.state()] {
          std::vector<std::pair<std::string, std::vector<uint64_t>>> tensors;
          for (const Tensor& tensor : state->subscription->layout().tensors()) {
            tensors.emplace_back(tensor.name, tensor.shape);
          }
          return py::object(py::cast(tensors));
        });
  }

  /// Waits for the next state. Returns None at the end, else a tuple.
  PendingResult Next() {
    auto found = std::make_shared<std::optional<Subscription::State>>();
    auto memory = std::make_shared<Memory>();
    const auto value = [found, memory]() -> py::object {
      if (!found->has_value()) return py::none();
      const Subscription::State& next = **found;
      std::vector<uint64_t> versions;
      for (const Version version : next.versions) versions.push_back(Value(version));
      py::object stamp = py::none();
      if (next.stamp.has_value()) {
        stamp = py::make_tuple(Value(next.stamp->publisher), next.stamp->number);
      }
      return py::make_tuple(versions, stamp, next.label, next.lag, next.examples,
                            Arena{**memory, *memory});
    };
    return operated_.Begin(
        [found, memory](State& state) {
          if (state.subscription == nullptr) return absl::CancelledError("closed");
          *memory = state.memories.Take(state.subscription->layout().parameters());
          std::span<const float> held;
          if (state.last != nullptr) held = *state.last;
          absl::StatusOr<std::optional<Subscription::State>> next =
              state.subscription->Next(**memory, held);
          if (!next.ok()) return next.status();
          *found = *std::move(next);
          state.last = *memory;
          return absl::OkStatus();
        },
        value);
  }

  void Close() {
    operated_.End([](State& state) {
      state.Release();
      return absl::OkStatus();
    });
  }

 private:
  using Memory = ModelMemories::Memory;

  struct State {
    void Release() { subscription.reset(); }

    Interruption interruption;
    std::unique_ptr<Subscription> subscription;
    ModelMemories memories{3};
    Memory last;  // That of the state returned last; null before the first.
  };

  Operated<State> operated_;
};

}  // namespace

void DefineReader(py::module_& module) {
  py::class_<Reader>(module, "Reader")
      .def(py::init<>())
      .def("connect", &Reader::Connect)
      .def("next", &Reader::Next)
      .def("close", &Reader::Close);
}

}  // namespace slipstream
