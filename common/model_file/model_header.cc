#include "common/model_file/model_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "common/json/json_text.h"

namespace slipstream {
namespace {

using Json = nlohmann::json;
using Event = Json::parse_event_t;

constexpr char kMetadata[] = "__metadata__";
constexpr size_t kAlignment = 8;
constexpr uint64_t kValueBytes = sizeof(float);
constexpr size_t kReasonBytesMax = 200;

// Depths in the header's JSON: of tensors, of their keys, of the numbers of a shape.
constexpr int kTensorDepth = 1;
constexpr int kKeyDepth = 2;
constexpr int kNumberDepth = 3;

std::string Quote(const std::string& text) { return JsonCompact(Json(text)); }

/// Returns the value's text, shortened for messages.
std::string Short(const Json& value) {
  const std::string text = JsonCompact(value);
  return text.size() <= 64 ? text : text.substr(0, 64) + "…";
}

/// Returns the numbers of a list of whole numbers of 64 bits; nothing if `value` is anything else.
std::optional<std::vector<uint64_t>> WholeNumbers(const Json& value) {
  if (!value.is_array()) return std::nullopt;
  std::vector<uint64_t> numbers;
  for (const Json& item : value) {
    if (!item.is_number_unsigned()) return std::nullopt;
    numbers.push_back(item.get<uint64_t>());
  }
  return numbers;
}

/// Returns the bytes that the values of a tensor take; nothing if 64 bits cannot hold the product.
std::optional<uint64_t> BytesOf(const std::vector<uint64_t>& shape) {
  uint64_t values = 1;
  bool overflows = false;
  for (const uint64_t size : shape) overflows |= __builtin_mul_overflow(values, size, &values);
  uint64_t bytes = 0;
  overflows |= __builtin_mul_overflow(values, kValueBytes, &bytes);
  return overflows ? std::nullopt : std::optional(bytes);
}

/// Takes the header's entries one by one, as the parser finds them, so that a long header is never
/// held as a tree. Keeps the first error.
class HeaderReader {
 public:
  explicit HeaderReader(uint64_t data_bytes) : data_bytes_(data_bytes) {}

  /// Returns whether the parser shall keep the value.
  bool OnEvent(int depth, Event event, Json& value);

  /// Refuses the header. Only the first reason counts.
  void Refuse(const std::string& reason) {
    if (status_.ok()) status_ = absl::DataLossError(reason);
  }

  absl::StatusOr<ModelHeader> Finish();

 private:
  /// A tensor and the place of its data, in bytes of data.
  struct Place {
    std::string name;
    std::vector<uint64_t> shape;
    uint64_t begin = 0;
    uint64_t end = 0;
  };

  void OnName(std::string name);
  void OnKey(const std::string& key);
  void OnEntry(const Json& entry);
  void OnMetadata(const Json& entry);
  void OnTensor(const Json& entry);
  void AddTensor(std::vector<uint64_t> shape, uint64_t begin, uint64_t end);
  void AddToLayout(const Place& place, uint64_t previous_end);

  void RefuseTensor(const std::string& reason) { RefuseTensor(name_, reason); }
  void RefuseTensor(const std::string& name, const std::string& reason) {
    Refuse(fmt::format("tensor \"{}\": {}", name.substr(0, 64), reason));
  }

  const uint64_t data_bytes_;
  absl::Status status_;
  ModelHeader header_;
  std::vector<Place> places_;  // In the order of the header.
  std::set<std::string> names_;

  // The entry that is being read.
  std::string name_;
  std::set<std::string> keys_;
};

bool HeaderReader::OnEvent(int depth, Event event, Json& value) {
  if (!status_.ok()) return false;
  const bool begins = event == Event::object_start || event == Event::array_start;
  if (begins && depth >= kNumberDepth) {
    Refuse("the header nests deeper than tensors, their keys and numbers");
    return false;
  }
  if (event == Event::key && depth == kTensorDepth) OnName(value.get<std::string>());
  if (event == Event::key && depth == kKeyDepth) OnKey(value.get<std::string>());
  if (depth != kTensorDepth || begins || event == Event::key) return true;
  OnEntry(value);
  return false;
}

void HeaderReader::OnName(std::string name) {
  name_ = std::move(name);
  keys_.clear();
  if (!names_.insert(name_).second) RefuseTensor("is there twice");
}

void HeaderReader::OnKey(const std::string& key) {
  if (!keys_.insert(key).second) RefuseTensor(fmt::format("\"{}\" is there twice", key));
}

void HeaderReader::OnEntry(const Json& entry) {
  if (name_ == kMetadata) {
    OnMetadata(entry);
  } else if (entry.is_object()) {
    OnTensor(entry);
  } else {
    RefuseTensor("is no object but " + Short(entry));
  }
}

void HeaderReader::OnMetadata(const Json& entry) {
  if (entry.is_null()) return;  // Some writers have this for none.
  if (!entry.is_object()) return Refuse("__metadata__ is no object but " + Short(entry));
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) {
      return Refuse(fmt::format("__metadata__: \"{}\" is no text but {}", key, Short(value)));
    }
    header_.metadata.emplace(key, value.get<std::string>());
  }
}

void HeaderReader::OnTensor(const Json& entry) {
  for (const char* key : {"dtype", "shape", "data_offsets"}) {
    if (!entry.contains(key)) return RefuseTensor(fmt::format("has no \"{}\"", key));
  }
  if (entry["dtype"] != "F32") {
    return RefuseTensor(fmt::format("dtype is {}; only \"F32\" is read", Short(entry["dtype"])));
  }
  std::optional<std::vector<uint64_t>> shape = WholeNumbers(entry["shape"]);
  if (!shape) {
    return RefuseTensor(
        fmt::format("shape is {}, not a list of whole numbers", Short(entry["shape"])));
  }
  const std::optional<std::vector<uint64_t>> offsets = WholeNumbers(entry["data_offsets"]);
  if (!offsets || offsets->size() != 2 || offsets->at(0) > offsets->at(1)) {
    return RefuseTensor(
        fmt::format("data_offsets are {}, not a begin and an end", Short(entry["data_offsets"])));
  }
  AddTensor(*std::move(shape), offsets->at(0), offsets->at(1));
}

void HeaderReader::AddTensor(std::vector<uint64_t> shape, uint64_t begin, uint64_t end) {
  if (places_.size() == TensorLayout::kTensorsMax) {
    return RefuseTensor(fmt::format("is one more than {}", TensorLayout::kTensorsMax));
  }
  const std::optional<uint64_t> bytes = BytesOf(shape);
  if (bytes != end - begin) {
    return RefuseTensor(fmt::format("has {} bytes of data, and its shape [{}] takes {}",
                                    end - begin, fmt::join(shape, ", "),
                                    bytes ? std::to_string(*bytes) : "more than 64 bits count"));
  }
  places_.push_back({name_, std::move(shape), begin, end});
}

void HeaderReader::AddToLayout(const Place& place, uint64_t previous_end) {
  if (place.begin != previous_end) {
    return RefuseTensor(
        place.name,
        fmt::format("its data begin at byte {}, and those of the tensor before it end at {}; "
                    "tensors must follow one another without gaps and overlaps",
                    place.begin, previous_end));
  }
  if (place.end > data_bytes_) {
    return RefuseTensor(place.name, fmt::format("truncated: its data end at byte {}, and the file "
                                                "has {} bytes of data",
                                                place.end, data_bytes_));
  }
  if (place.begin == place.end) return;  // There is nothing that a layout could place.
  const absl::Status added = header_.layout.Append(place.name, place.shape);
  if (!added.ok()) Refuse(std::string(added.message()));
}

absl::StatusOr<ModelHeader> HeaderReader::Finish() {
  std::ranges::sort(places_, {},
                    [](const Place& place) { return std::pair(place.begin, place.end); });
  uint64_t end = 0;
  for (const Place& place : places_) {
    if (!status_.ok()) break;
    AddToLayout(place, end);
    end = place.end;
  }
  if (data_bytes_ > end) {
    Refuse(fmt::format("{} bytes follow the data of the last tensor", data_bytes_ - end));
  }
  if (!status_.ok()) return status_;
  return std::move(header_);
}

}  // namespace

std::string EncodeModelHeader(const TensorLayout& layout, const ModelMetadata& metadata,
                              std::span<const StoredTensor> before,
                              std::span<const StoredTensor> after) {
  std::vector<std::string> entries;
  uint64_t end = 0;
  const auto add = [&](const std::string& name, std::string_view dtype,
                       const std::vector<uint64_t>& shape, uint64_t bytes) {
    entries.push_back(fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                                  Quote(name), dtype, fmt::join(shape, ","), end, end + bytes));
    end += bytes;
  };
  if (!metadata.empty()) {
    entries.push_back(fmt::format("\"{}\":{}", kMetadata, JsonCompact(Json(metadata))));
  }
  for (const StoredTensor& tensor : before) {
    add(tensor.name, tensor.dtype, tensor.shape, tensor.bytes.size());
  }
  for (const Tensor& tensor : layout.tensors()) {
    add(tensor.name, "F32", tensor.shape, tensor.size() * kValueBytes);
  }
  for (const StoredTensor& tensor : after) {
    add(tensor.name, tensor.dtype, tensor.shape, tensor.bytes.size());
  }
  std::string json = fmt::format("{{{}}}", fmt::join(entries, ","));
  json.resize((json.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  return json;
}

absl::StatusOr<ModelHeader> ParseModelHeader(std::string_view json, uint64_t data_bytes) {
  const size_t begin = json.find_first_not_of(" \t\r\n");
  if (begin == json.npos || json[begin] != '{') {
    return absl::DataLossError("the header is no JSON object: it does not begin with '{'");
  }
  // The parser would take it for the end of the text.
  if (json.find('\0') != json.npos) {
    return absl::DataLossError("the header is not JSON: it has a zero byte");
  }
  HeaderReader reader(data_bytes);
  try {
    const Json rest = Json::parse(json, [&reader](int depth, Event event, Json& value) {
      return reader.OnEvent(depth, event, value);
    });
  } catch (const Json::exception& error) {
    // The exception's text may quote all of the header.
    reader.Refuse(fmt::format("the header is not JSON: {:.{}}", error.what(), kReasonBytesMax));
  }
  return reader.Finish();
}

}  // namespace slipstream
