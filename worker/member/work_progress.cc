#include "worker/member/work_progress.h"

namespace slipstream {

google::protobuf::RepeatedPtrField<v1::WorkProgress> ToWire(
    const std::vector<UnitProgress>& progress) {
  google::protobuf::RepeatedPtrField<v1::WorkProgress> wire;
  for (const UnitProgress& unit : progress) {
    v1::WorkProgress& line = *wire.Add();
    line.set_unit(unit.id);
    line.set_batches_done(unit.batches_done);
  }
  return wire;
}

}  // namespace slipstream
