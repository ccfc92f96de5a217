#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/contract/params/param_table.h"
#include "engine/contract/params/scheduled_number.h"
#include "engine/contract/world/metric_spec.h"

// The types that a parameter may have: how each is read out of a pipeline, and written as TOML.
namespace sluice::engine {

/// A member of a pipeline that is chosen by name and has parameters of its own, such as an objective:
/// `objective = "ppo_clip"` or `objective = { type = "ppo_clip", clip_low = 0.1 }`. Base has `static constexpr kComponent`.
template <class Base>
struct Component {
  std::string type;
  std::shared_ptr<const Base> object;
  std::vector<ParamText> parts;          // its type and every key, defaults among them
  std::vector<MetricSpec> metrics;       // what it declares
  std::vector<NamedSchedule> schedules;  // its scheduled parameters
};

/// An integer that may be left to the plan: `"auto"`.
struct IntegerOrAuto {
  int64_t value = 0;  // of "auto": what the plan chose, 0 before
  bool automatic = false;
};

/// Enumerations name their values through `enum_names(E)`, found by argument-dependent lookup, which returns an array of
/// {E value, const char* name} pairs.
template <class E>
concept NamedEnum = std::is_enum_v<E> && requires(E e) {
  enum_names(e);
};

namespace detail {

/// In the bounds, and finite unless it is the upper one: `inf` where there may be no limit.
bool takes_number(const ParamInfo&, double);

bool read_boolean(const Value&, bool&, BindContext&, const ParamInfo&);
bool read_integer(const Value&, int64_t&, BindContext&, const ParamInfo&);
bool read_integer_or_auto(const Value&, IntegerOrAuto&, BindContext&, const ParamInfo&);
bool read_real(const Value&, double&, BindContext&, const ParamInfo&);
bool read_scheduled(const Value&, ScheduledNumber&, BindContext&, const ParamInfo&);
bool read_string(const Value&, std::string&, BindContext&, const ParamInfo&);
bool read_path(const Value&, std::filesystem::path&, BindContext&, const ParamInfo&);
bool read_paths(const Value&, std::vector<std::filesystem::path>&, BindContext&, const ParamInfo&);
bool read_reals(const Value&, std::vector<double>&, BindContext&, const ParamInfo&);
bool read_strings(const Value&, std::vector<std::string>&, BindContext&, const ParamInfo&);
bool read_choice(const Value&, size_t& index, BindContext&, const ParamInfo&);
/// Makes the component that `value` names, type and parts among it; without object when something was
/// reported.
Component<const void> read_component(const Value&, BindContext&, const ParamInfo&);
const Table* read_table(const Value&, BindContext&, const ParamInfo&);

/// The tables of an array; nothing where something was reported.
std::optional<std::vector<const Table*>> read_tables(const Value&, BindContext&, const ParamInfo&);

/// What the text of a path means: `~` and variables (base/files/user_path.h), relative to `base`, and ParamInfo::find. Throws
/// UserError.
std::filesystem::path meant_path(const std::string& text, const std::string& base, const ParamInfo&);

/// `{ a = 1, b = 2 }`
std::string inline_text(const std::vector<ParamText>& parts);

/// `[A, B]`; of none nothing.
std::string array_text(const std::vector<std::string>& elements);

std::string to_text(bool value);
std::string to_text(int64_t value);
std::string to_text(const IntegerOrAuto& value);
std::string to_text(double value);
std::string to_text(const ScheduledNumber& value);
std::string to_text(const std::string& value);
std::string to_text(const std::filesystem::path& value);
std::string to_text(const std::vector<std::filesystem::path>& value);
std::string to_text(const std::vector<double>& value);
std::string to_text(const std::vector<std::string>& value);

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

template <class T>
struct IsComponent : std::false_type {};
template <class T>
struct IsComponent<Component<T>> : std::true_type {};

template <class T>
constexpr ParamKind kind_of() {
  if constexpr (IsOptional<T>::value)
    return kind_of<typename T::value_type>();
  else if constexpr (IsComponent<T>::value)
    return ParamKind::kComponent;
  else if constexpr (std::is_same_v<T, bool>)
    return ParamKind::kBoolean;
  else if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, IntegerOrAuto>)
    return ParamKind::kInteger;
  else if constexpr (std::is_same_v<T, double>)
    return ParamKind::kReal;
  else if constexpr (std::is_same_v<T, ScheduledNumber>)
    return ParamKind::kScheduled;
  else if constexpr (std::is_same_v<T, std::string>)
    return ParamKind::kString;
  else if constexpr (std::is_same_v<T, std::filesystem::path>)
    return ParamKind::kPath;
  else if constexpr (std::is_same_v<T, std::vector<std::filesystem::path>>)
    return ParamKind::kPaths;
  else if constexpr (std::is_same_v<T, std::vector<double>>)
    return ParamKind::kReals;
  else if constexpr (std::is_same_v<T, std::vector<std::string>>)
    return ParamKind::kStrings;
  else {
    static_assert(
        NamedEnum<T>,
        "a parameter is bool, int64_t, double, ScheduledNumber, string, path, paths, numbers, strings, a named enum, an optional "
        "or a Component");
    return ParamKind::kChoice;
  }
}

template <class T>
void read(const Value& value, T& out, BindContext& context, const ParamInfo& info) {
  if constexpr (IsOptional<T>::value) {
    typename T::value_type inner{};
    read(value, inner, context, info);
    out = inner;
  } else if constexpr (IsComponent<T>::value) {
    using Base = std::remove_reference_t<decltype(*out.object)>;
    Component<const void> read = read_component(value, context, info);
    out = {std::move(read.type), std::static_pointer_cast<Base>(read.object), std::move(read.parts), std::move(read.metrics),
           std::move(read.schedules)};
  } else if constexpr (std::is_same_v<T, bool>) {
    read_boolean(value, out, context, info);
  } else if constexpr (std::is_same_v<T, int64_t>) {
    read_integer(value, out, context, info);
  } else if constexpr (std::is_same_v<T, IntegerOrAuto>) {
    read_integer_or_auto(value, out, context, info);
  } else if constexpr (std::is_same_v<T, double>) {
    read_real(value, out, context, info);
  } else if constexpr (std::is_same_v<T, ScheduledNumber>) {
    read_scheduled(value, out, context, info);
  } else if constexpr (std::is_same_v<T, std::string>) {
    read_string(value, out, context, info);
  } else if constexpr (std::is_same_v<T, std::filesystem::path>) {
    read_path(value, out, context, info);
  } else if constexpr (std::is_same_v<T, std::vector<std::filesystem::path>>) {
    read_paths(value, out, context, info);
  } else if constexpr (std::is_same_v<T, std::vector<double>>) {
    read_reals(value, out, context, info);
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    read_strings(value, out, context, info);
  } else {
    size_t index = 0;
    if (read_choice(value, index, context, info)) out = enum_names(T{})[index].first;
  }
}

template <class T>
std::string text_of(const T& value) {
  if constexpr (IsOptional<T>::value) {
    return value ? text_of(*value) : std::string();
  } else if constexpr (IsComponent<T>::value) {
    if (value.parts.empty()) return value.type.empty() ? std::string() : to_text(value.type);
    return inline_text(value.parts);
  } else if constexpr (NamedEnum<T>) {
    for (const auto& [candidate, name] : enum_names(T{})) {
      if (candidate == value) return to_text(std::string(name));
    }
    return {};
  } else {
    return to_text(value);
  }
}

}  // namespace detail

}  // namespace sluice::engine
