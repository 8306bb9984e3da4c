#include "test/apiserver/selector.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

namespace shunt::test_api {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto space = std::string_view(" \t");
  const std::size_t begin = text.find_first_not_of(space);
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(space) - begin + 1);
}

// Splits at commas that stand outside parentheses.
std::vector<std::string_view> split_terms(std::string_view text) {
  std::vector<std::string_view> out;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      const std::string_view term = trimmed(text.substr(begin, i - begin));
      if (!term.empty()) {
        out.push_back(term);
      }
      begin = i + 1;
    } else {
      depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    }
  }
  return out;
}

struct Comparison {
  std::string key;
  std::string value;
  bool equal = true;
};

std::optional<Comparison> parse_comparison(std::string_view term) {
  const std::size_t at = term.find('=');
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const bool equal = at == 0 || term[at - 1] != '!';
  const std::size_t value = at + 1 < term.size() && term[at + 1] == '=' ? at + 2 : at + 1;
  return Comparison{
      std::string(trimmed(term.substr(0, equal ? at : at - 1))),
      std::string(trimmed(term.substr(value))),
      equal};
}

// "key in (a, b)" and "key notin (a, b)".
std::optional<Selector::Term> parse_set(std::string_view term) {
  const std::size_t open = term.find('(');
  if (open == std::string_view::npos || term.back() != ')') {
    return std::nullopt;
  }
  std::string_view head = trimmed(term.substr(0, open));
  const bool in = head.ends_with(" in");
  if (!in && !head.ends_with(" notin")) {
    return std::nullopt;
  }
  head.remove_suffix(in ? 3 : 6);
  std::set<std::string> values;
  for (const auto value : split_terms(term.substr(open + 1, term.size() - open - 2))) {
    values.emplace(value);
  }
  return [in, key = std::string(trimmed(head)), values = std::move(values)](const Object& object) {
    const auto found = object.labels.find(key);
    return (found != object.labels.end() && values.contains(found->second)) == in;
  };
}

std::optional<Selector::Term> parse_label_term(std::string_view term) {
  if (auto set = parse_set(term)) {
    return set;
  }
  if (auto comparison = parse_comparison(term)) {
    return [c = std::move(*comparison)](const Object& object) {
      const auto found = object.labels.find(c.key);
      return (found != object.labels.end() && found->second == c.value) == c.equal;
    };
  }
  if (term.find_first_of(" ()<>") != std::string_view::npos) {
    return std::nullopt;
  }
  const bool wanted = term.front() != '!';
  return [wanted, key = std::string(trimmed(term.substr(wanted ? 0 : 1)))](const Object& object) {
    return object.labels.contains(key) == wanted;
  };
}

using Field = std::string Object::*;

std::optional<Field> field_named(const Resource& resource, std::string_view path) {
  if (path == "metadata.name") {
    return &Object::name;
  }
  if (path == "metadata.namespace" && resource.namespaced) {
    return &Object::ns;
  }
  if (path == "spec.clusterIP" && resource.plural == "services") {
    return &Object::cluster_ip;
  }
  if (path == "spec.type" && resource.plural == "services") {
    return &Object::type;
  }
  return std::nullopt;
}

}  // namespace

Answer<Selector> Selector::parse(
    const Resource& resource, std::string_view labels, std::string_view fields) {
  Selector out;
  for (const auto term : split_terms(labels)) {
    auto parsed = parse_label_term(term);
    if (!parsed) {
      return refuse(bad_request(fmt::format("unable to parse requirement: {}", term)));
    }
    out.terms_.push_back(std::move(*parsed));
  }
  for (const auto term : split_terms(fields)) {
    const auto comparison = parse_comparison(term);
    if (!comparison) {
      return refuse(bad_request(fmt::format(
          "invalid field selector: invalid selector: '{}'; can't understand '{}'", fields, term)));
    }
    const auto field = field_named(resource, comparison->key);
    if (!field) {
      return refuse(bad_request(fmt::format(
          "Unable to find \"{}, Resource={}\" that match label selector \"{}\", field selector "
          "\"{}\": field label not supported: {}",
          resource.group.empty() ? "/v1" : resource.api_version(),
          resource.plural,
          labels,
          fields,
          comparison->key)));
    }
    out.terms_.emplace_back([field = *field, c = *comparison](const Object& object) {
      return (object.*field == c.value) == c.equal;
    });
  }
  return out;
}

bool Selector::matches(const Object& object) const {
  return std::ranges::all_of(terms_, [&](const Term& term) { return term(object); });
}

}  // namespace shunt::test_api
