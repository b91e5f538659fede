#include <map>
#include <utility>

#include "tests/simulation/checkers.h"

namespace slipstream {
namespace {

bool IsAcknowledged(const PushReply& reply) {
  return reply.outcome == PushOutcome::kApplied || reply.outcome == PushOutcome::kBuffered;
}

void CheckAnswers(const PushKey& key, const PushEvidence& push, Findings& findings) {
  bool is_first = true;
  for (const PushReply& reply : push.decisions) {
    if (IsRefusal(reply.outcome)) continue;
    if (std::exchange(is_first, false)) {
      if (reply.outcome == PushOutcome::kDuplicate) {
        findings.Add("{}: a repetition, but of what?", Text(key));
      }
    } else if (reply.outcome != PushOutcome::kDuplicate) {
      findings.Add("{}: taken twice, the second time as {}", Text(key), Name(reply.outcome));
    } else if (reply.version != push.taken->version || reply.staleness != push.taken->staleness) {
      findings.Add("{}: a repetition was answered otherwise than the first", Text(key));
    }
  }
}

}  // namespace

void CheckPushes(const Evidence& evidence, Findings& findings) {
  std::map<PushKey, Version> entered;
  for (size_t shard = 0; shard < evidence.entries.size(); ++shard) {
    for (const auto& [version, entries] : evidence.entries[shard]) {
      for (const Entry& entry : entries) {
        if (entry.push == nullptr) {
          findings.Add("shard {} version {}: position {} changed, of which nobody sent a gradient",
                       shard, Value(version), entry.slot);
          continue;
        }
        const PushKey& key = entry.push->made.push;
        const auto [first, is_new] = entered.emplace(key, version);
        if (!is_new) {
          findings.Add("{}: in version {} and again in version {}", Text(key), Value(first->second),
                       Value(version));
        }
      }
    }
  }
  for (const auto& [key, push] : evidence.pushes) {
    CheckAnswers(key, push, findings);
    if (!push.made.slot.has_value()) continue;
    const auto found = entered.find(key);
    const bool is_due = push.taken.has_value() && IsAcknowledged(*push.taken);
    if (is_due && found == entered.end()) {
      findings.Add("{}: acknowledged as {}, but not in the weights", Text(key),
                   Name(push.taken->outcome));
    } else if (is_due && found->second != push.taken->version) {
      findings.Add("{}: said to be in version {}, is in version {}", Text(key),
                   Value(push.taken->version), Value(found->second));
    } else if (!is_due && found != entered.end()) {
      findings.Add("{}: in version {}, though never acknowledged", Text(key), Value(found->second));
    }
  }
}

}  // namespace slipstream
