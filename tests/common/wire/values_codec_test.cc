#include "common/wire/values_codec.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/philox.h"
#include "common/kernels/copy_values.h"
#include "proto/shard.pb.h"

namespace slipstream {
namespace {

using google::protobuf::io::CodedOutputStream;

std::string Flatten(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

/// Returns `bytes` in slices of at most `slice_bytes_max`, as a network might deliver them.
grpc::ByteBuffer CutAnywhere(const std::string& bytes, uint32_t slice_bytes_max,
                             RandomStream& random) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < bytes.size();) {
    const size_t size = std::min<size_t>(bytes.size() - at, 1 + random.Below(slice_bytes_max));
    slices.emplace_back(bytes.data() + at, size);
    at += size;
  }
  return {slices.data(), slices.size()};
}

grpc::ByteBuffer InOneSlice(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return {&slice, 1};
}

std::string Bytes(const ReceivedValues& received) {
  std::string bytes;
  for (const ByteSegment& segment : received.segments()) {
    bytes.append(reinterpret_cast<const char*>(segment.data()), segment.size());
  }
  return bytes;
}

std::vector<float> RandomValues(size_t count, RandomStream& random) {
  std::vector<float> values(count);
  for (float& value : values) value = random.Uniform(-1, 1);
  return values;
}

LentBytes Lend(const std::vector<float>& values) {
  return {std::as_bytes(std::span(values)), std::make_shared<int>(0)};
}

void SetValues(const std::vector<float>& values, v1::PushChunk& chunk) {
  chunk.set_values(values.data(), values.size() * sizeof(float));
}

/// Returns a random chunk. Half of all fields are left out.
v1::PushChunk RandomChunk(RandomStream& random) {
  const auto number = [&random]() -> uint64_t {
    if (random.Below(2) == 0) return 0;
    const uint64_t wide = uint64_t{random.NextWord()} << 32 | random.NextWord();
    return wide >> random.Below(64);
  };
  v1::PushChunk chunk;
  chunk.set_offset(number());
  if (random.Below(2) == 0) return chunk;
  v1::PushHeader& header = *chunk.mutable_header();
  if (random.Below(4) > 0) {
    header.mutable_identity()->set_run(number());
    header.mutable_identity()->set_worker(static_cast<uint32_t>(number()));
    header.mutable_identity()->set_incarnation(number());
  }
  header.set_sequence(number());
  header.set_shard_map(number());
  header.set_base_version(number());
  header.set_count(number());
  header.set_examples(static_cast<uint32_t>(number()));
  header.add_batches()->set_first(number());
  header.set_pull(random.Below(2) == 0);
  header.set_slot(static_cast<uint32_t>(number()));
  return chunk;
}

TEST(ValuesCodecTest, EncodesToTheBytesOfProtobufsEncoder) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 0);
    const v1::PushChunk rest = RandomChunk(random);
    const std::vector<float> values = RandomValues(random.Below(3) * random.Below(5000), random);
    v1::PushChunk whole = rest;
    SetValues(values, whole);

    const grpc::ByteBuffer encoded = EncodeWithValues(rest, Lend(values));

    ASSERT_EQ(Flatten(encoded), whole.SerializeAsString());
  }
}

TEST(ValuesCodecTest, DecodesProtobufsEncodingHoweverItIsCutIntoSlices) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 1);
    const v1::PushChunk rest = RandomChunk(random);
    const std::vector<float> values = RandomValues(random.Below(2) * random.Below(2000), random);
    v1::PushChunk whole = rest;
    SetValues(values, whole);
    const uint32_t slice_bytes_max = seed % 3 == 0 ? 1 : 1 + random.Below(700);
    const grpc::ByteBuffer message =
        CutAnywhere(whole.SerializeAsString(), slice_bytes_max, random);

    v1::PushChunk decoded;
    const absl::StatusOr<ReceivedValues> received = DecodeWithValues(message, decoded);

    ASSERT_TRUE(received.ok()) << received.status();
    ASSERT_EQ(decoded.SerializeAsString(), rest.SerializeAsString());
    std::vector<float> copied(received->count());
    CopyValues(received->segments(), copied);
    ASSERT_EQ(copied, values);
  }
}

TEST(ValuesCodecTest, ValuesStayReadableAfterTheyWereMoved) {
  v1::PushChunk whole;
  SetValues({1, 2, 3}, whole);
  RandomStream random(1, 2);
  v1::PushChunk rest;
  absl::StatusOr<ReceivedValues> received =
      DecodeWithValues(CutAnywhere(whole.SerializeAsString(), 2, random), rest);
  ASSERT_TRUE(received.ok());

  const ReceivedValues moved = *std::move(received);

  std::vector<float> copied(moved.count());
  CopyValues(moved.segments(), copied);
  EXPECT_EQ(copied, (std::vector<float>{1, 2, 3}));
}

TEST(ValuesCodecTest, TheOwnerOfLentValuesIsReleasedWithTheLastBuffer) {
  const std::vector<float> values(100, 1.5f);
  int released = 0;
  std::shared_ptr<const void> owner(values.data(), [&released](const void*) { ++released; });
  grpc::ByteBuffer first =
      EncodeWithValues(v1::PushChunk(), {std::as_bytes(std::span(values)), std::move(owner)});
  grpc::ByteBuffer second = first;

  first.Clear();
  EXPECT_EQ(released, 0);
  second.Clear();

  EXPECT_EQ(released, 1);
}

/// Returns an encoding that is legal although protobuf's encoder would not make it.
std::string Encoded(const std::function<void(CodedOutputStream&)>& write) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    CodedOutputStream out(&stream);
    write(out);
  }
  return bytes;
}

void WriteBytes(CodedOutputStream& out, uint32_t field, const std::string& bytes) {
  out.WriteTag(field << 3 | 2);
  out.WriteVarint32(static_cast<uint32_t>(bytes.size()));
  out.WriteString(bytes);
}

void WriteNumber(CodedOutputStream& out, uint32_t field, uint64_t number) {
  out.WriteTag(field << 3);
  out.WriteVarint64(number);
}

/// Returns the bytes of one field of a message. The field is drawn at random.
std::string RandomField(RandomStream& random) {
  return Encoded([&random](CodedOutputStream& out) {
    switch (random.Below(8)) {
      case 0:
        return WriteNumber(out, 2, random.NextWord());
      case 1:
        return WriteBytes(out, 15, std::string(4 * random.Below(50), 'v'));
      case 2: {
        v1::PushChunk chunk = RandomChunk(random);
        return WriteBytes(out, 1, chunk.header().SerializeAsString());
      }
      case 3:
        return WriteNumber(out, 100 + random.Below(1000), random.NextWord());
      case 4:
        return WriteBytes(out, 16 + random.Below(100), std::string(random.Below(300), 'u'));
      case 5:
        out.WriteTag(15 << 3 | 5);  // Field 15 with another type is an unknown field.
        return out.WriteLittleEndian32(random.NextWord());
      case 6:
        out.WriteTag(20 << 3 | 1);
        return out.WriteLittleEndian64(random.NextWord());
      default:
        out.WriteRaw("\x90\x80\x00\x81\x00", 5);  // Field 2 with varints longer than needed.
        return;
    }
  });
}

TEST(ValuesCodecTest, ReadsReorderedUnknownAndRepeatedFieldsAsProtobufDoes) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 3);
    std::string bytes;
    for (uint32_t fields = random.Below(10); fields > 0; --fields) bytes += RandomField(random);
    v1::PushChunk expected;
    ASSERT_TRUE(expected.ParseFromString(bytes));

    v1::PushChunk rest;
    const absl::StatusOr<ReceivedValues> received =
        DecodeWithValues(CutAnywhere(bytes, 40, random), rest);

    ASSERT_TRUE(received.ok()) << received.status();
    ASSERT_EQ(Bytes(*received), expected.values());
    expected.clear_values();
    ASSERT_EQ(rest.SerializeAsString(), expected.SerializeAsString());
  }
}

TEST(ValuesCodecTest, EveryTruncationIsAStatusOrAWholePrefix) {
  RandomStream random(4, 4);
  v1::PushChunk whole;
  whole.mutable_header()->mutable_identity()->set_run(random.NextWord());
  whole.mutable_header()->set_sequence(300);
  whole.set_offset(1000);
  SetValues(RandomValues(40, random), whole);
  const std::string bytes = whole.SerializeAsString();

  for (size_t size = 0; size < bytes.size(); ++size) {
    SCOPED_TRACE(testing::Message() << "first " << size << " of " << bytes.size() << " bytes");
    const std::string cut = bytes.substr(0, size);
    v1::PushChunk oracle;
    v1::PushChunk rest;

    const absl::StatusOr<ReceivedValues> received =
        DecodeWithValues(CutAnywhere(cut, 3, random), rest);

    ASSERT_EQ(received.ok(), oracle.ParseFromString(cut));
    if (!received.ok()) {
      ASSERT_EQ(received.status().code(), absl::StatusCode::kInvalidArgument);
    }
  }
}

TEST(ValuesCodecTest, AcceptsDamagedMessagesOnlyWhereProtobufDoes) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 5);
    v1::PushChunk whole = RandomChunk(random);
    SetValues(RandomValues(random.Below(20), random), whole);
    std::string bytes = whole.SerializeAsString();
    if (bytes.empty()) continue;
    for (int damage = 0; damage < 2; ++damage) {
      bytes[random.Below(static_cast<uint32_t>(bytes.size()))] =
          static_cast<char>(random.NextWord());
    }
    v1::PushChunk oracle;
    const bool legal = oracle.ParseFromString(bytes);

    v1::PushChunk rest;
    const absl::StatusOr<ReceivedValues> received =
        DecodeWithValues(CutAnywhere(bytes, 9, random), rest);

    if (!received.ok()) continue;  // Unlike protobuf, we refuse groups.
    ASSERT_TRUE(legal);
    ASSERT_EQ(Bytes(*received), oracle.values());
  }
}

struct Refusal {
  std::string name;
  std::string bytes;
};

TEST(ValuesCodecTest, RefusesWhatIsMalformed) {
  const std::vector<Refusal> refusals = {
      {"field number 0", std::string("\x02\x00", 2)},
      {"endless tag", std::string(11, '\xff')},
      {"tag beyond 32 bits", std::string("\xf8\xff\xff\xff\x7f\x01", 6)},
      {"tag of more bytes than 32 bits need", std::string("\xfa\x80\x80\x80\x80\x00\x00", 7)},
      {"length of more bytes than 32 bits need", std::string("\x7a\x80\x80\x80\x80\x80\x00", 7)},
      {"endless number", "\x10" + std::string(11, '\xff')},
      {"start of a group", "\x13\x14"},
      {"end of a group", "\x14"},
      {"wire type 6", "\x16"},
      {"wire type 7", "\x17"},
      {"length beyond the message", "\x7a\x08half"},
      {"length of 2^63", "\x7a" + std::string(9, '\x80') + "\x01"},
      {"header that is none", "\x0a\x01\xff"},
  };
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(refusal.name);
    v1::PushChunk rest;

    const absl::StatusOr<ReceivedValues> received =
        DecodeWithValues(InOneSlice(refusal.bytes), rest);

    EXPECT_EQ(received.status().code(), absl::StatusCode::kInvalidArgument) << received.status();
  }
}

TEST(ValuesCodecTest, RefusesMoreBesideTheValuesThanItWouldCopy) {
  const auto with_unknown = [](size_t bytes) {
    return Encoded(
        [bytes](CodedOutputStream& out) { WriteBytes(out, 99, std::string(bytes, 'x')); });
  };
  v1::PushChunk rest;

  EXPECT_TRUE(DecodeWithValues(InOneSlice(with_unknown(kRestBytesMax - 16)), rest).ok());
  EXPECT_EQ(DecodeWithValues(InOneSlice(with_unknown(kRestBytesMax)), rest).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ValuesCodecTest, NoMessageIsAStatus) {
  v1::PushChunk rest;

  EXPECT_EQ(DecodeWithValues(grpc::ByteBuffer(), rest).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace slipstream
