#ifndef SLIPSTREAM_COMMON_CONFIG_FIELD_BUILDERS_H_
#define SLIPSTREAM_COMMON_CONFIG_FIELD_BUILDERS_H_

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/config/field_table.h"
#include "common/settings/parameters.h"

namespace slipstream {

/// These functions write a row of the table of run.yaml's keys. `access` returns a reference to the
/// member of a spec; both may be const.

/// True for members whose type the table holds as it is.
template <typename Member>
constexpr bool kIsCarriedAsIt =
    std::is_same_v<Member, bool> || std::is_same_v<Member, double> ||
    std::is_same_v<Member, std::string> || std::is_same_v<Member, absl::Duration>;

/// Converts a member's value to the type in which the table holds it: counts to uint64_t, a device
/// to text.
template <typename Member>
auto Carry(const Member& member) {
  if constexpr (kIsCarriedAsIt<Member>) {
    return ScalarValue(member);
  } else if constexpr (std::is_same_v<Member, DeviceChoice>) {
    return ScalarValue(member.ToText());
  } else {
    return ScalarValue(static_cast<uint64_t>(member));
  }
}

template <typename Member>
Member Uncarry(const ScalarValue& value) {
  if constexpr (kIsCarriedAsIt<Member>) {
    return std::get<Member>(value);
  } else if constexpr (std::is_same_v<Member, DeviceChoice>) {
    const std::optional<Member> choice = Member::FromText(std::get<std::string>(value));
    PS_CHECK(choice.has_value());  // ReadScalar checked it.
    return *choice;
  } else {
    return static_cast<Member>(std::get<uint64_t>(value));
  }
}

/// Returns a field that cannot be read or set yet.
inline Field FieldOf(std::string path, std::string doc, FieldType type) {
  Field field;
  field.path = std::move(path);
  field.doc = std::move(doc);
  field.type = std::move(type);
  return field;
}

/// A scalar key.
template <typename Access>
Field Scalar(std::string path, std::string doc, ScalarType type, Access access) {
  Field field = FieldOf(std::move(path), std::move(doc), std::move(type));
  field.get = [access](const RunSpec& spec) -> FieldValue { return Carry(access(spec)); };
  field.set = [access](RunSpec& spec, const FieldValue& value) {
    using Member = std::remove_reference_t<decltype(access(spec))>;
    access(spec) = Uncarry<Member>(std::get<ScalarValue>(value));
  };
  return field;
}

/// A key that names a value of an enumeration or of bool; `names` is in the order of the values.
template <typename Access>
Field Choice(std::string path, std::string doc, const std::vector<std::string>& names,
             Access access) {
  Field field = FieldOf(std::move(path), std::move(doc), ScalarType(ChoiceType{names}));
  field.get = [access, names](const RunSpec& spec) -> FieldValue {
    return ScalarValue(names.at(static_cast<size_t>(access(spec))));
  };
  field.set = [access, names](RunSpec& spec, const FieldValue& value) {
    using Member = std::remove_reference_t<decltype(access(spec))>;
    const auto& name = std::get<std::string>(std::get<ScalarValue>(value));
    const auto found = std::ranges::find(names, name);
    PS_CHECK(found != names.end());  // ReadScalar checked it.
    access(spec) = static_cast<Member>(found - names.begin());
  };
  return field;
}

/// The key of one parameter of an axis; `access` returns the values of all its parameters.
template <typename Access>
Field Parameter(const std::string& section, const ParameterRow& row, Access access) {
  Field field;
  field.path = fmt::format("{}{}", section, row.key);
  field.doc = row.doc;
  if (row.is_whole) {
    field.type =
        ScalarType(CountType{static_cast<uint64_t>(row.min), static_cast<uint64_t>(row.max)});
  } else {
    field.type = ScalarType(NumberType{.min = row.min, .max = row.max});
  }
  field.get = [=](const RunSpec& spec) -> FieldValue {
    const double value = access(spec)[row.key];
    return row.is_whole ? ScalarValue(static_cast<uint64_t>(value)) : ScalarValue(value);
  };
  field.set = [=](RunSpec& spec, const FieldValue& value) {
    const auto& scalar = std::get<ScalarValue>(value);
    access(spec)[row.key] =
        row.is_whole ? static_cast<double>(std::get<uint64_t>(scalar)) : std::get<double>(scalar);
  };
  field.is_on = [=](const RunSpec& spec) { return access(spec).IsOn(row.key); };
  return field;
}

template <typename Access>
Field List(std::string path, std::string doc, ListType type, Access access) {
  Field field = FieldOf(std::move(path), std::move(doc), std::move(type));
  field.get = [access](const RunSpec& spec) -> FieldValue {
    std::vector<ScalarValue> values;
    for (const auto& member : access(spec)) values.push_back(Carry(member));
    return values;
  };
  field.set = [access](RunSpec& spec, const FieldValue& value) {
    auto& members = access(spec);
    using Member = typename std::remove_reference_t<decltype(members)>::value_type;
    members.clear();
    for (const ScalarValue& item : std::get<std::vector<ScalarValue>>(value)) {
      members.push_back(Uncarry<Member>(item));
    }
  };
  return field;
}

/// Returns the field of a key with a list of records. FieldValue and RunSpec hold the list as the
/// same type.
template <typename Access>
Field Records(std::string path, std::string doc, FieldType type, Access access) {
  Field field = FieldOf(std::move(path), std::move(doc), std::move(type));
  field.get = [access](const RunSpec& spec) -> FieldValue { return access(spec); };
  field.set = [access](RunSpec& spec, const FieldValue& value) {
    auto& records = access(spec);
    records = std::get<std::remove_reference_t<decltype(records)>>(value);
  };
  return field;
}

/// A key whose value may differ from process to process.
inline Field Local(Field::Locality locality, Field field) {
  field.locality = locality;
  return field;
}

/// A key that has a meaning only where another one is set to one of `choices`.
inline Field Only(std::string path, std::vector<std::string> choices, std::string example,
                  Field field) {
  field.condition = Condition{std::move(path), std::move(choices)};
  field.example = std::move(example);
  return field;
}

/// A key that names a row of an axis; its doc explains every row.
template <typename Rows, typename Access>
Field RowChoice(std::string path, std::string_view doc, const Rows& rows, Access access) {
  std::vector<std::string> names;
  std::vector<std::string> docs;
  for (const auto& row : rows) {
    names.emplace_back(row.name);
    docs.push_back(fmt::format("{}: {}", row.name, row.doc));
  }
  return Choice(std::move(path), fmt::format("{} {}.", doc, fmt::join(docs, "; ")), names, access);
}

/// Adds the keys of an axis' parameters to the section of the key at `path`, which names the row.
template <typename Rows, typename Parameters, typename Access>
void AddParameters(std::vector<Field>& table, const std::string& path, const Rows& rows,
                   const Parameters& parameters, Access access) {
  const std::string section = path.substr(0, path.rfind('.') + 1);
  for (const ParameterRow& parameter : parameters) {
    std::vector<std::string> takers;
    for (const auto& row : rows) {
      if (std::ranges::count(row.parameters, parameter.key) > 0) takers.emplace_back(row.name);
    }
    table.push_back(Only(path, takers, "", Parameter(section, parameter, access)));
  }
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_FIELD_BUILDERS_H_
