#ifndef SLIPSTREAM_TESTS_SIMULATION_SIM_DISK_H_
#define SLIPSTREAM_TESTS_SIMULATION_SIM_DISK_H_

#include <cstdint>
#include <map>
#include <vector>

#include "server/core/saved_version.h"
#include "tests/simulation/history.h"
#include "tests/support/simulated_disk.h"

namespace slipstream {

/// The disk of one shard's server, and what the simulator knows of it. It outlives the server's
/// processes.
///
/// The events of the shard's log are numbered from 1 on, over all processes.
struct SimDisk {
  SimulatedDisk files;

  /// The checkpoints that the last process had when it ended, oldest first.
  std::vector<SavedVersion> saved;

  /// By segment of the log: how many events come before it.
  std::map<uint64_t, uint64_t> segment_begins;

  /// How many events of the log are on the disk for sure, so that others may know of them.
  uint64_t events_synced = 0;

  /// The history that an observer would have seen of events that were not known to be on the disk
  /// when their process ended. It happened if the next process finds the event in the log.
  struct Untold {
    uint64_t log_event = 0;
    Event event;
  };
  std::vector<Untold> untold;
};

/// How the process of a server ends.
struct ServerDeath {
  /// The machine stops, too, and forgets what was not synced. What is left of that is drawn.
  bool takes_machine = false;
  uint32_t seed = 0;

  /// How many calls of the disk the process still makes of those that it is about to make.
  uint32_t calls_left = 0;

  /// A byte of the newest checkpoint is damaged, if there is an older one.
  bool damages = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SIM_DISK_H_
