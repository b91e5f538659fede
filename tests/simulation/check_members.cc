#include <map>

#include "tests/simulation/checkers.h"

namespace slipstream {
namespace {

struct Known {
  Incarnation incarnation{};
  absl::Time heard;
  bool has_left = false;
};

void CheckView(const Scenario& scenario, const ViewMade& made,
               const std::map<WorkerId, Known>& workers, Findings& findings) {
  // The coordinator checks leases every 20 ms.
  const absl::Duration lease_max = scenario.run.cluster.lease + absl::Milliseconds(21);
  for (const Member& member : made.view.members) {
    const auto found = workers.find(member.worker);
    if (found == workers.end() || found->second.incarnation != member.incarnation ||
        found->second.has_left || made.time - found->second.heard > lease_max) {
      findings.Add("view {} has worker {}#{}, who is not there", Value(made.view.number),
                   Value(member.worker), Value(member.incarnation));
    }
  }
  for (const auto& [id, worker] : workers) {
    const bool is_live = !worker.has_left && made.time - worker.heard <= scenario.run.cluster.lease;
    if (is_live && made.view.Find(id) == nullptr) {
      findings.Add("view {} lacks worker {}#{}, who is there", Value(made.view.number), Value(id),
                   Value(worker.incarnation));
    }
  }
}

}  // namespace

void CheckMembers(const Scenario& scenario, const History& history, Findings& findings) {
  std::map<WorkerId, Known> workers;
  std::map<ViewNumber, View> views;
  for (const Event& event : history.events) {
    if (const auto* heard = std::get_if<WorkerHeard>(&event)) {
      Known& worker = workers[heard->worker.worker];
      if (heard->what == WorkerHeard::What::kRegistered) {
        worker = {heard->worker.incarnation, heard->time, false};
      } else if (heard->worker.incarnation != worker.incarnation || worker.has_left) {
        findings.Add("worker {}#{} was heard, but is fenced or gone", Value(heard->worker.worker),
                     Value(heard->worker.incarnation));
      }
      worker.heard = heard->time;
      worker.has_left = heard->what == WorkerHeard::What::kLeft;
    } else if (const auto* made = std::get_if<ViewMade>(&event)) {
      CheckView(scenario, *made, workers, findings);
      views[made->view.number] = made->view;
    } else if (const auto* taken = std::get_if<OrdersTaken>(&event)) {
      if (Value(taken->view.number) == 0) continue;
      const auto found = views.find(taken->view.number);
      if (found == views.end() || !(found->second == taken->view)) {
        findings.Add("shard {} has another view {}", Value(taken->shard),
                     Value(taken->view.number));
      }
    }
  }
}

}  // namespace slipstream
