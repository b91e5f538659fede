#include <map>
#include <vector>

#include "tests/simulation/checkers.h"

namespace slipstream {

void CheckSynced(const Scenario& scenario, const History& history, Findings& findings) {
  if (!scenario.run.durability.keeps_log()) return;
  std::map<PushKey, PushReply> decided;
  for (const Event& event : history.events) {
    if (const auto* decision = std::get_if<PushDecided>(&event)) {
      if (!IsRefusal(decision->reply.outcome)) decided.emplace(decision->push, decision->reply);
    } else if (const auto* answered = std::get_if<PushAnswered>(&event)) {
      if (IsRefusal(answered->reply.outcome)) continue;
      const auto found = decided.find(answered->push);
      if (found == decided.end()) {
        findings.Add("{}: answered as {} before the log had it", Text(answered->push),
                     Name(answered->reply.outcome));
      } else if (answered->reply.version != found->second.version) {
        findings.Add("{}: answered as part of version {}, and is part of {}", Text(answered->push),
                     Value(answered->reply.version), Value(found->second.version));
      }
      if (answered->reply.durability != Durability::kSynced) {
        findings.Add("{}: the answer promises less than the log keeps", Text(answered->push));
      }
    } else if (const auto* returned = std::get_if<ShardReturned>(&event)) {
      findings.Add("shard {}: goes back to version {}, and has a log", Value(returned->shard),
                   Value(returned->from.version));
    }
  }
}

}  // namespace slipstream
