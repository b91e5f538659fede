#include "common/config/layer_table.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <type_traits>
#include <utility>

#include "common/base/check.h"
#include "common/config/suggestion.h"

namespace slipstream {
namespace {

constexpr CountType kSize = {1, uint64_t{1} << 24};

/// Returns the double that is printed like `value`: widening 0.1f would print more digits than were
/// written.
double AsWritten(float value) {
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  double result = 0;
  std::from_chars(text.data(), end, result);
  return result;
}

template <typename Carrier, typename Member>
Carrier Widen(const Member& member) {
  if constexpr (std::is_same_v<Member, float>) {
    return AsWritten(member);
  } else {
    return static_cast<Carrier>(member);
  }
}

/// Binds a setting to a member of its layer struct.
template <typename Layer, typename Member>
LayerField Bind(std::string name, std::string doc, ScalarType type, bool is_required,
                Member Layer::*member) {
  // Numbers are carried as double and counts as uint64_t, whatever type the struct has.
  using Carrier =
      std::conditional_t<std::is_same_v<Member, bool>, bool,
                         std::conditional_t<std::is_floating_point_v<Member>, double, uint64_t>>;
  LayerField field = {std::move(name), std::move(doc), std::move(type), is_required, {}, {}};
  field.get = [member](const LayerSpec& layer) -> ScalarValue {
    return Widen<Carrier>(std::get<Layer>(layer).*member);
  };
  field.set = [member](LayerSpec& layer, const ScalarValue& value) {
    std::get<Layer>(layer).*member = static_cast<Member>(std::get<Carrier>(value));
  };
  return field;
}

LayerField RegionOfLrn() {
  constexpr const char* kWithin = "within";
  constexpr const char* kAcross = "across";
  return {.name = "region",
          .doc = "Whether windows lie within a channel or across channels.",
          .type = ChoiceType{{kWithin, kAcross}},
          .get = [](const LayerSpec& layer) -> ScalarValue {
            const bool is_within = std::get<LrnLayer>(layer).region == LrnLayer::Region::kWithin;
            return std::string(is_within ? kWithin : kAcross);
          },
          .set =
              [](LayerSpec& layer, const ScalarValue& value) {
                const bool is_within = std::get<std::string>(value) == kWithin;
                std::get<LrnLayer>(layer).region =
                    is_within ? LrnLayer::Region::kWithin : LrnLayer::Region::kAcross;
              }};
}

/// The setting of a layer with weights that says what these are at first.
template <typename Layer>
LayerField InitNormal() {
  return {.name = "init_normal",
          .doc =
              "Standard deviation of normal initial weights, beside biases of 0; without it, "
              "weights and biases are uniform in ±1/√fan_in.",
          .type = NumberType{.max = 1e6},
          .get = [](const LayerSpec& layer) -> std::optional<ScalarValue> {
            const std::optional<float>& deviation = std::get<Layer>(layer).init_normal;
            if (!deviation) return std::nullopt;
            return AsWritten(*deviation);
          },
          .set =
              [](LayerSpec& layer, const ScalarValue& value) {
                std::get<Layer>(layer).init_normal = static_cast<float>(std::get<double>(value));
              }};
}

LayerKind Pool(std::string name, std::string doc, PoolLayer::Kind kind) {
  return {
      std::move(name),
      std::move(doc),
      PoolLayer{.kind = kind},
      {Bind("kernel", "Height and width of a window.", kSize, false, &PoolLayer::kernel),
       Bind("stride", "Distance of windows.", kSize, false, &PoolLayer::stride),
       Bind("ceil", "Whether a last partial window counts.", FlagType{}, false, &PoolLayer::ceil)}};
}

std::vector<LayerKind> MakeLayerKinds() {
  return {
      {"dense",
       "Fully connected.",
       DenseLayer{},
       {Bind("units", "Outputs.", kSize, true, &DenseLayer::units), InitNormal<DenseLayer>()}},
      {"conv2d",
       "2-D convolution with bias.",
       Conv2dLayer{},
       {Bind("channels", "Output channels.", kSize, true, &Conv2dLayer::channels),
        Bind("kernel", "Height and width of the kernel.", kSize, true, &Conv2dLayer::kernel),
        Bind("stride", "Distance of windows.", kSize, false, &Conv2dLayer::stride),
        Bind("padding", "Zeros on all four sides.", CountType{0, kSize.max}, false,
             &Conv2dLayer::padding),
        InitNormal<Conv2dLayer>()}},
      Pool("max_pool", "The largest of each window.", PoolLayer::Kind::kMax),
      Pool("average_pool", "The mean of each window.", PoolLayer::Kind::kAverage),
      {"lrn",
       "Local response normalisation, x / (1 + alpha/N Σ x²)^beta over windows of N values.",
       LrnLayer{},
       {RegionOfLrn(),
        Bind("size", "Side of a window within a channel, or channels of one across them; odd.",
             CountType{1, 255}, false, &LrnLayer::size),
        Bind("alpha", "Factor of the mean square.", NumberType{.max = 1e6}, false,
             &LrnLayer::alpha),
        Bind("beta", "Power of the divisor.", NumberType{.max = 100}, false, &LrnLayer::beta)}},
      {"relu", "max(0, x).", ReluLayer{}, {}},
      {"tanh", "Hyperbolic tangent.", TanhLayer{}, {}},
      {"dropout",
       "Zeroes elements at random in training.",
       DropoutLayer{},
       {Bind("rate", "Probability of zero.", NumberType{.max = 1, .is_max_excluded = true}, false,
             &DropoutLayer::rate)}},
      {"flatten", "The image as one vector.", FlattenLayer{}, {}},
  };
}

const LayerKind& KindOf(const LayerSpec& layer) {
  for (const LayerKind& kind : LayerKinds()) {
    if (kind.defaults.index() != layer.index()) continue;
    const auto* pool = std::get_if<PoolLayer>(&layer);
    if (pool == nullptr || pool->kind == std::get<PoolLayer>(kind.defaults).kind) return kind;
  }
  PS_CHECK(false && "every kind of layer is in the table");
  return LayerKinds().front();
}

const LayerKind* FindKind(const std::string& name, const Source& source,
                          DiagnosticList& diagnostics) {
  std::vector<std::string> names;
  for (const LayerKind& kind : LayerKinds()) {
    if (kind.name == name) return &kind;
    names.push_back(kind.name);
  }
  diagnostics.Report(source, fmt::format("unknown layer \"{}\"; layers are {}{}", name,
                                         fmt::join(names, ", "), DidYouMean(name, names)));
  return nullptr;
}

std::optional<LayerSpec> ReadSettings(const LayerKind& kind, const Source& kind_source,
                                      const YamlNode& settings, DiagnosticList& diagnostics) {
  return ReadRecord(kind.fields, "layer " + kind.name, kind_source, settings, kind.defaults,
                    diagnostics);
}

}  // namespace

const std::vector<LayerKind>& LayerKinds() {
  static const std::vector<LayerKind>& kinds = *new std::vector<LayerKind>(MakeLayerKinds());
  return kinds;
}

std::optional<LayerSpec> ReadLayer(const YamlNode& node, DiagnosticList& diagnostics) {
  if (node.kind == YamlNode::Kind::kRefused) return std::nullopt;
  if (node.kind == YamlNode::Kind::kScalar) {
    const LayerKind* kind = FindKind(node.text, node.source, diagnostics);
    if (kind == nullptr) return std::nullopt;
    return ReadSettings(*kind, node.source, YamlNode(), diagnostics);
  }
  if (node.kind != YamlNode::Kind::kMap || node.entries.size() != 1) {
    const std::string found = node.kind == YamlNode::Kind::kMap
                                  ? fmt::format("a map of {} keys", node.entries.size())
                                  : DescribeNode(node);
    diagnostics.Report(node.source,
                       fmt::format("a layer is a name, or a name with its settings as dense: "
                                   "{{units: 10}}, not {}",
                                   found));
    return std::nullopt;
  }
  const YamlNode::Entry& entry = node.entries.front();
  const LayerKind* kind = FindKind(entry.key, entry.key_source, diagnostics);
  if (kind == nullptr || entry.value.kind == YamlNode::Kind::kRefused) return std::nullopt;
  if (entry.value.kind == YamlNode::Kind::kScalar || entry.value.kind == YamlNode::Kind::kList) {
    diagnostics.Report(entry.value.source,
                       fmt::format("the settings of layer {} must be a map, not {}", kind->name,
                                   DescribeNode(entry.value)));
    return std::nullopt;
  }
  return ReadSettings(*kind, entry.key_source, entry.value, diagnostics);
}

std::string WriteLayer(const LayerSpec& layer) {
  const LayerKind& kind = KindOf(layer);
  if (kind.fields.empty()) return kind.name;
  return kind.name + ": " + WriteRecord(kind.fields, layer);
}

}  // namespace slipstream
