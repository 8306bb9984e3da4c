#include "test/apiserver/manifests.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace shunt::test_api {
namespace {

template <typename T>
bool read_number(const std::string& text, Json& out) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || at != end) {
    return false;
  }
  out = value;
  return true;
}

// YAML 1.2 core: what is not quoted may be null, a boolean or a number.
Json scalar_to_json(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() == "!" || node.Tag() == "tag:yaml.org,2002:str") {
    return text;
  }
  if (text.empty() || text == "~" || text == "null") {
    return nullptr;
  }
  if (text == "true" || text == "false") {
    return text == "true";
  }
  Json number;
  const bool numeric = text.find_first_not_of("0123456789+-.eE") == std::string::npos;
  if (numeric && (read_number<std::int64_t>(text, number) || read_number<double>(text, number))) {
    return number;
  }
  return text;
}

Json to_json(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Scalar:
      return scalar_to_json(node);
    case YAML::NodeType::Sequence: {
      Json out = Json::array();
      for (const auto& item : node) {
        out.push_back(to_json(item));
      }
      return out;
    }
    case YAML::NodeType::Map: {
      Json out = Json::object();
      for (const auto& entry : node) {
        out[entry.first.Scalar()] = to_json(entry.second);
      }
      return out;
    }
    default:
      return nullptr;
  }
}

void add_document(Json document, std::vector<Json>& out) {
  if (document.is_null()) {
    return;
  }
  if (document.is_array()) {
    for (Json& item : document) {
      add_document(std::move(item), out);
    }
    return;
  }
  const std::string kind = text_at(document, "kind");
  if (!kind.ends_with("List") || !document.contains("items") || !document["items"].is_array()) {
    out.push_back(std::move(document));
    return;
  }
  for (Json& item : document["items"]) {
    if (item.is_object() && kind != "List" && !item.contains("kind")) {
      item["kind"] = kind.substr(0, kind.size() - 4);
      item["apiVersion"] = document["apiVersion"];
    }
    add_document(std::move(item), out);
  }
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool is_manifest(const std::filesystem::path& path) {
  const auto extension = path.extension();
  return extension == ".yaml" || extension == ".yml" || extension == ".json";
}

}  // namespace

Result<std::vector<Json>> parse_manifests(const std::string& text) {
  std::vector<Json> out;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && (text[first] == '{' || text[first] == '[')) {
    Json document = Json::parse(text, nullptr, false);
    if (!document.is_discarded()) {
      add_document(std::move(document), out);
      return out;
    }
  }
  try {
    for (const YAML::Node& document : YAML::LoadAll(text)) {
      add_document(to_json(document), out);
    }
  } catch (const YAML::Exception& error) {
    return fail(Errc::Invalid, std::string("neither JSON nor YAML: ") + error.what());
  }
  return out;
}

Result<std::vector<Json>> read_manifests(const std::string& path) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
      if (is_manifest(entry.path())) {
        files.push_back(entry.path());
      }
    }
    std::ranges::sort(files);
  } else if (std::filesystem::exists(path, error)) {
    files.emplace_back(path);
  } else {
    return fail(Errc::NotFound, path + ": no such file or directory");
  }
  std::vector<Json> out;
  for (const auto& file : files) {
    auto objects = parse_manifests(read_file(file));
    if (!objects) {
      return fail(file.string(), objects.error());
    }
    std::ranges::move(*objects, std::back_inserter(out));
  }
  return out;
}

}  // namespace shunt::test_api
