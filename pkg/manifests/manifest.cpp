#include "manifests/manifest.h"

#include <algorithm>
#include <utility>

#include "kube/decode_json.h"
#include "kube/findings.h"
#include "manifests/defaults.h"
#include "manifests/json_outline.h"
#include "manifests/yaml_to_json.h"

namespace shunt::manifests {
namespace {

constexpr std::size_t kMaxComplaints = 100;  // of one file; who mends those will see the next

std::size_t lines_in(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

class Collector {
 public:
  // One document, or one item of a list. `line` is where its document begins.
  void take(std::string_view json, std::size_t line) {
    const auto outline = outline_of(json);
    if (!outline) {
      complain(line, "an object", outline.error().what);
    } else if (outline->has_items && outline->kind.ends_with("List")) {
      take_list(*outline, line);
    } else {
      take_object(json, *outline, line);
    }
  }

  Manifest finish() {
    if (left_out_ > 0) {
      manifest_.complaints.push_back("and " + std::to_string(left_out_) + " more");
    }
    return std::move(manifest_);
  }

 private:
  void take_list(const Outline& list, std::size_t line) {
    const std::string_view kind = list.kind.substr(0, list.kind.size() - 4);  // "" of a plain List
    for (const std::string_view item : list.items) {
      auto outline = outline_of(item);
      if (!outline) {
        complain(line, "an item of a list", outline.error().what);
        continue;
      }
      if (outline->kind.empty() && !kind.empty()) {  // items of a ServiceList have no kind
        outline->kind = kind;
        outline->api_version = list.api_version;
      }
      take_object(item, *outline, line);
    }
  }

  void take_object(std::string_view json, const Outline& outline, std::size_t line) {
    const auto is = [&](std::string_view api_version, std::string_view kind) {
      if (outline.kind != kind) {
        return false;
      }
      if (outline.api_version != api_version) {
        complain(
            line,
            kind,
            "apiVersion \"" + kube::excerpt(outline.api_version) + "\" is not " +
                std::string(api_version));
        return false;
      }
      return true;
    };
    const std::size_t before = complaints_;
    if (is("v1", "Service")) {
      decode(json, line, manifest_.objects.services);
    } else if (is("discovery.k8s.io/v1", "EndpointSlice")) {
      decode(json, line, manifest_.objects.slices);
    } else if (is("v1", "Node")) {
      decode(json, line, manifest_.objects.nodes);
    } else if (is("networking.k8s.io/v1", "ServiceCIDR")) {
      decode(json, line, manifest_.objects.service_cidrs);
    } else if (outline.kind.empty()) {
      complain(line, "an object", "it has no kind");
    } else if (complaints_ == before) {
      ++manifest_.ignored;
    }
  }

  template <typename T>
  void decode(std::string_view json, std::size_t line, std::vector<std::shared_ptr<const T>>& out) {
    const std::string kind(kube::kind_of<T>());
    std::vector<kube::DecodeIssue> issues;
    auto object = kube::decode_object<T>(json, &issues);
    if (!object) {
      complain(line, kind, object.error().what);
      return;
    }
    apply_defaults(*object);
    const std::string who = kind + " " + kube::excerpt(kube::to_string(object->meta.key), 400);
    for (const kube::DecodeIssue& issue : issues) {
      complain(line, who, issue.what);
    }
    bool usable = true;
    for (const Lack& lack : lacks_of(*object)) {
      usable = usable && !lack.set_aside;
      complain(line, who, (lack.set_aside ? "set aside: " : "") + lack.what);
    }
    if (usable) {
      out.push_back(std::make_shared<const T>(std::move(*object)));
    }
  }

  void complain(std::size_t line, std::string_view who, std::string_view what) {
    ++complaints_;
    if (manifest_.complaints.size() >= kMaxComplaints) {
      ++left_out_;
      return;
    }
    std::string text = "line " + std::to_string(line);
    text.append(": ").append(who).append(": ").append(what);
    manifest_.complaints.push_back(std::move(text));
  }

  Manifest manifest_;
  std::size_t complaints_ = 0;
  std::size_t left_out_ = 0;
};

// Counts lines as it goes: each byte is looked at once.
Result<> each_json_value(std::string_view text, Collector& collector) {
  std::string_view rest = text;
  std::size_t line = 1;
  for (;;) {
    const auto value = first_value(rest);
    if (!value) {
      line += lines_in(rest.substr(0, rest.find_first_not_of(" \t\r\n")));
      return fail("line " + std::to_string(line), value.error());
    }
    if (value->empty()) {
      return {};
    }
    const auto begin = static_cast<std::size_t>(value->data() - rest.data());
    line += lines_in(rest.substr(0, begin));
    collector.take(*value, line);
    line += lines_in(*value);
    rest.remove_prefix(begin + value->size());
  }
}

}  // namespace

Result<Manifest> parse_manifest(std::string_view text, Format format) {
  if (text.size() > kMaxFile) {
    return fail(Errc::Invalid, "line 1: more than " + std::to_string(kMaxFile) + " bytes");
  }
  Collector collector;
  const auto read =
      format == Format::Json
          ? each_json_value(text, collector)
          : yaml_to_json(text, 2 * kMaxFile, [&](std::string_view json, std::size_t line) {
              collector.take(json, line);
            });
  if (!read) {
    return tl::unexpected(read.error());
  }
  return collector.finish();
}

}  // namespace shunt::manifests
