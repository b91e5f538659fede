#ifndef SLIPSTREAM_COMMON_PROTOCOL_TENSOR_SET_H_
#define SLIPSTREAM_COMMON_PROTOCOL_TENSOR_SET_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace slipstream {

/// A set of tensors, by their places in the layout of a model. It travels as a bit for each, and is
/// as long as the last one needs: bit t % 8 of byte t / 8, from the lowest on, is that of tensor t.
class TensorSet {
 public:
  TensorSet() = default;
  explicit TensorSet(std::string_view bits) : bits_(bits) { Shorten(); }

  void Add(size_t tensor) {
    bits_.resize(std::max(bits_.size(), tensor / 8 + 1));
    bits_[tensor / 8] = static_cast<char>(bits_[tensor / 8] | (1 << tensor % 8));
  }
  bool Has(size_t tensor) const {
    return tensor / 8 < bits_.size() && ((bits_[tensor / 8] >> tensor % 8) & 1) != 0;
  }
  bool empty() const { return bits_.empty(); }

  /// Removes the tensors that `other` does not have.
  void IntersectWith(const TensorSet& other) {
    bits_.resize(std::min(bits_.size(), other.bits_.size()));
    for (size_t i = 0; i < bits_.size(); ++i) {
      bits_[i] = static_cast<char>(bits_[i] & other.bits_[i]);
    }
    Shorten();
  }

  const std::string& bits() const { return bits_; }

  friend bool operator==(const TensorSet&, const TensorSet&) = default;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.bits_);
  }

 private:
  /// Removes zero bytes at the end, so that equal sets have equal bits.
  void Shorten() { bits_.resize(bits_.find_last_not_of('\0') + 1); }

  std::string bits_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_PROTOCOL_TENSOR_SET_H_
