#ifndef SLIPSTREAM_TESTS_SUPPORT_SPOIL_H_
#define SLIPSTREAM_TESTS_SUPPORT_SPOIL_H_

namespace slipstream {

/// Has `change` alter what an object saves of itself, in the order of its Parts, as damage to a
/// file could.
template <typename Object, typename Change>
void Spoil(Object& object, Change change) {
  Object::Parts(change, object);
}

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SUPPORT_SPOIL_H_
