#include "test/apiserver/accept.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "base/trimmed.h"

namespace shunt::test_api {
namespace {

// Cuts what comes before the next `separator`.
std::string_view take_until(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view out = trimmed(text.substr(0, end));
  text.remove_prefix(std::min(end + 1, text.size()));
  return out;
}

double preference(std::string_view parameters) {
  while (!parameters.empty()) {
    const std::string_view parameter = take_until(parameters, ';');
    if (parameter.starts_with("q=")) {
      return std::strtod(std::string(parameter.substr(2)).c_str(), nullptr);
    }
  }
  return 1;
}

std::optional<Encoding> encoding_of(std::string_view media, bool offer_protobuf) {
  if (media == kProtobufType && offer_protobuf) {
    return Encoding::AsProtobuf;
  }
  if (media == kJsonType || media == "application/*" || media == "*/*") {
    return Encoding::AsJson;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Encoding> negotiate(std::string_view accept, bool offer_protobuf) {
  if (accept.empty()) {
    return Encoding::AsJson;
  }
  std::optional<Encoding> best;
  double best_preference = 0;
  while (!accept.empty()) {
    std::string_view range = take_until(accept, ',');
    const std::string_view media = take_until(range, ';');
    const auto encoding = encoding_of(media, offer_protobuf);
    const double liked = preference(range);
    if (encoding && liked > best_preference) {
      best = encoding;
      best_preference = liked;
    }
  }
  return best;
}

}  // namespace shunt::test_api
