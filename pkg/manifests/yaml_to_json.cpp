#include "manifests/yaml_to_json.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <istream>
#include <optional>
#include <streambuf>
#include <utility>
#include <vector>

#include "kube/decoded.h"

namespace shunt::manifests {
namespace {

// Thrown through yaml-cpp, and caught below.
struct Refused {
  std::size_t line;
  std::string what;
};

// A stream over bytes that are there already.
class View final : public std::streambuf {
 public:
  explicit View(std::string_view text) {
    char* begin = const_cast<char*>(text.data());  // an interface from before const
    setg(begin, begin, begin + text.size());
  }
};

void append_quoted(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

template <std::size_t kCount>
bool is_one_of(std::string_view text, const std::array<std::string_view, kCount>& words) {
  return std::ranges::find(words, text) != words.end();
}

// strconv.ParseInt(text, 0, 64) of what has lost its underscores.
std::optional<std::int64_t> integer(std::string_view text) {
  const bool negative = text.starts_with('-');
  std::string digits(text.substr(negative || text.starts_with('+') ? 1 : 0));
  int base = 10;
  if (digits.size() > 1 && digits[0] == '0') {
    const char kind = digits[1];
    base = kind == 'x' || kind == 'X' ? 16 : kind == 'b' || kind == 'B' ? 2 : 8;
    const bool has_letter = base != 8 || kind == 'o' || kind == 'O';
    digits.erase(0, has_letter ? 2 : 1);
  }
  if (negative) {
    digits.insert(digits.begin(), '-');
  }
  std::int64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [at, error] = std::from_chars(digits.data(), end, value, base);
  const bool good = error == std::errc() && at == end && (negative || !digits.starts_with('-'));
  return good ? std::optional(value) : std::nullopt;
}

// [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?
std::optional<double> decimal(std::string_view text) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
  }
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  const bool begins =
      !digits.empty() &&
      ((digits[0] >= '0' && digits[0] <= '9') ||
       (digits.size() > 1 && digits[0] == '.' && digits[1] >= '0' && digits[1] <= '9'));
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  return begins && error == std::errc() && at == end && std::isfinite(value) ? std::optional(value)
                                                                             : std::nullopt;
}

std::string text_of(double value) {
  std::array<char, 64> out{};
  const auto [end, error] = std::to_chars(out.data(), out.data() + out.size(), value);
  return {out.data(), end};
}

// Writes the JSON while yaml-cpp tells what it sees. A value that has an anchor is remembered by
// its place in the JSON, and an alias copies that.
class Writer final : public YAML::EventHandler {
 public:
  using OnDocument = std::function<void(std::string_view, std::size_t)>;
  Writer(std::size_t max_json, const OnDocument& on_document)
      : max_json_(max_json), on_document_(&on_document) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    // yaml-cpp leaves what no document can begin with (",") where it is, and would find an
    // empty document there for ever.
    if (mark.pos == document_at_) {
      throw Refused{line_of(mark), "no document can begin with this"};
    }
    document_at_ = mark.pos;
    json_.clear();
    anchors_.clear();
    levels_.clear();
    line_ = line_of(mark);
  }
  void OnDocumentEnd() override {
    if (!json_.empty() && json_ != "null") {
      (*on_document_)(json_, line_);
    }
    written_ += json_.size();
  }

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (wants_key()) {
      throw Refused{line_of(mark), "a key that is empty"};
    }
    const std::size_t begin = begin_value();
    json_ += "null";
    end_value(mark, anchor, begin);
  }

  void OnScalar(
      const YAML::Mark& mark,
      const std::string& tag,
      YAML::anchor_t anchor,
      const std::string& value) override {
    if (wants_key()) {
      if (value == "<<" && tag == "?") {
        throw Refused{line_of(mark), "merge keys (<<) are not supported"};
      }
      begin_key();
      const std::size_t begin = json_.size();
      append_quoted(json_, value);
      remember(anchor, begin);
      json_ += ':';
      levels_.back().wants_key = false;
      check_size(mark);
      return;
    }
    const std::size_t begin = begin_value();
    // "?" is what has no quotes and no tag; "!" what has quotes.
    if (tag == "!" || tag == "tag:yaml.org,2002:str" || tag == "tag:yaml.org,2002:binary") {
      append_quoted(json_, value);
    } else {
      json_ += plain_scalar_to_json(value);
    }
    end_value(mark, anchor, begin);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (wants_key()) {
      throw Refused{line_of(mark), "a key that is an alias"};
    }
    if (anchor >= anchors_.size() || anchors_[anchor].size == kOpen) {
      throw Refused{line_of(mark), "an alias inside of what it stands for"};
    }
    const Place place = anchors_[anchor];
    check_size(mark, place.size);
    const std::size_t begin = begin_value();
    json_.append(json_, place.begin, place.size);
    end_value(mark, 0, begin);
  }

  void OnSequenceStart(
      const YAML::Mark& mark,
      const std::string& /*tag*/,
      YAML::anchor_t anchor,
      YAML::EmitterStyle::value /*style*/) override {
    open(mark, anchor, '[');
  }
  void OnSequenceEnd() override { close(']'); }
  void OnMapStart(
      const YAML::Mark& mark,
      const std::string& /*tag*/,
      YAML::anchor_t anchor,
      YAML::EmitterStyle::value /*style*/) override {
    open(mark, anchor, '{');
  }
  void OnMapEnd() override { close('}'); }

 private:
  static constexpr std::size_t kOpen = static_cast<std::size_t>(-1);
  struct Place {
    std::size_t begin = 0;
    std::size_t size = kOpen;
  };
  struct Level {
    bool is_map = false;
    bool wants_key = false;
    bool empty = true;
    YAML::anchor_t anchor = 0;
    std::size_t begin = 0;
  };

  // Where errors are, counted from one.
  static std::size_t line_of(const YAML::Mark& mark) {
    return static_cast<std::size_t>(std::max(mark.line, 0)) + 1;
  }

  bool wants_key() const { return !levels_.empty() && levels_.back().wants_key; }

  void begin_key() { separate(); }
  std::size_t begin_value() {
    if (!levels_.empty() && !levels_.back().is_map) {
      separate();
    }
    return json_.size();
  }
  void separate() {
    if (!std::exchange(levels_.back().empty, false)) {
      json_ += ',';
    }
  }

  void end_value(const YAML::Mark& mark, YAML::anchor_t anchor, std::size_t begin) {
    remember(anchor, begin);
    value_is_complete();
    check_size(mark);
  }
  void value_is_complete() {
    if (!levels_.empty()) {
      levels_.back().wants_key = levels_.back().is_map;
    }
  }

  void open(const YAML::Mark& mark, YAML::anchor_t anchor, char bracket) {
    if (wants_key()) {
      throw Refused{line_of(mark), "a key that is no text"};
    }
    if (levels_.size() >= kMaxYamlDepth) {
      throw Refused{line_of(mark), "nested deeper than " + std::to_string(kMaxYamlDepth)};
    }
    const std::size_t begin = begin_value();
    place_of(anchor) = {begin, kOpen};
    json_ += bracket;
    const bool is_map = bracket == '{';
    levels_.push_back({is_map, is_map, true, anchor, begin});
  }
  void close(char bracket) {
    const Level level = levels_.back();
    levels_.pop_back();
    json_ += bracket;
    remember(level.anchor, level.begin);
    value_is_complete();
  }

  // Anchors are numbered from 1; 0 is none, and its place is nobody's.
  Place& place_of(YAML::anchor_t anchor) {
    if (anchor >= anchors_.size()) {
      anchors_.resize(anchor + 1);
    }
    return anchors_[anchor];
  }
  void remember(YAML::anchor_t anchor, std::size_t begin) {
    if (anchor != 0) {
      place_of(anchor) = {begin, json_.size() - begin};
    }
  }

  void check_size(const YAML::Mark& mark, std::size_t more = 0) const {
    if (written_ + json_.size() + more > max_json_) {
      throw Refused{
          line_of(mark), "it unfolds to more than " + std::to_string(max_json_) + " bytes"};
    }
  }

  std::size_t max_json_;
  const OnDocument* on_document_;
  std::string json_;
  std::vector<Level> levels_;
  std::vector<Place> anchors_;
  std::size_t line_ = 1;
  std::optional<int> document_at_;  // where the last document began
  std::size_t written_ = 0;         // by the documents before
};

tl::unexpected<Error> refused(std::size_t line, const std::string& what) {
  return fail(Errc::Invalid, "line " + std::to_string(line) + ": " + kube::excerpt(what, 200));
}

}  // namespace

std::string plain_scalar_to_json(std::string_view text) {
  static constexpr std::array<std::string_view, 5> kNull{"", "~", "null", "Null", "NULL"};
  static constexpr std::array<std::string_view, 11> kTrue{
      "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"};
  static constexpr std::array<std::string_view, 11> kFalse{
      "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"};
  if (is_one_of(text, kNull)) {
    return "null";
  }
  if (is_one_of(text, kTrue)) {
    return "true";
  }
  if (is_one_of(text, kFalse)) {
    return "false";
  }
  std::string digits(text);
  std::erase(digits, '_');
  if (const auto value = integer(digits)) {
    return std::to_string(*value);
  }
  if (const auto value = decimal(digits)) {
    return text_of(*value);
  }
  std::string out;
  append_quoted(out, text);
  return out;
}

Result<> yaml_to_json(
    std::string_view text,
    std::size_t max_json,
    const std::function<void(std::string_view json, std::size_t line)>& on_document) {
  View view(text);
  std::istream stream(&view);
  Writer writer(max_json, on_document);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(writer)) {
    }
  } catch (const YAML::Exception& error) {
    return refused(static_cast<std::size_t>(std::max(error.mark.line, 0)) + 1, error.msg);
  } catch (const Refused& error) {
    return refused(error.line, error.what);
  }
  return {};
}

}  // namespace shunt::manifests
