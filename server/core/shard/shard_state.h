#ifndef SLIPSTREAM_SERVER_CORE_SHARD_SHARD_STATE_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_SHARD_STATE_H_

#include "server/core/shard/initial_weights.h"
#include "server/core/shard/kept_versions.h"
#include "server/core/shard/member_pace.h"
#include "server/core/shard/member_table.h"
#include "server/core/shard/open_round.h"
#include "server/core/shard/push_intake.h"
#include "server/core/shard/push_tally.h"
#include "server/core/shard/reader_pace.h"
#include "server/core/shard/reader_pulls.h"
#include "server/core/shard/run_position.h"
#include "server/core/shard/save_schedule.h"
#include "server/core/shard/unknown_members.h"
#include "server/core/shard/waiting_calls.h"

namespace slipstream {

/// All that a shard's machine remembers, as one value. A machine that continues with a copy of it,
/// under the same options, makes the same decisions. No part knows another.
struct ShardState {
  RunPosition run;
  MemberTable members;
  UnknownMembers unknown_members;
  InitialWeights initial_weights;
  KeptVersions versions;
  OpenRound open;
  MemberPace pace;
  PushIntake intake;
  WaitingCalls waiting;
  ReaderPulls reader_pulls;
  ReaderPace reader_pace;  // Used on shard 0, which holds workers back for all shards.
  SaveSchedule saves;      // Used if the shard saves its state.
  PushTally tally;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.run, self.members, self.unknown_members, self.initial_weights, self.versions,
            self.open, self.pace, self.intake, self.waiting, self.reader_pulls, self.reader_pace,
            self.saves, self.tally);
  }
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_SHARD_STATE_H_
