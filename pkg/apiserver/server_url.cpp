#include "apiserver/server_url.h"

#include <algorithm>
#include <charconv>
#include <string>

namespace shunt::apiserver {
namespace {

tl::unexpected<Error> refuse(std::string_view why) {
  // The URL itself stays out of the message: it may hold a password.
  return fail(Errc::Invalid, "the server URL " + std::string(why));
}

bool is_host_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_';
}

bool is_path_character(char c) {
  return is_host_character(c) || std::string_view("/~%:@!$&'()*+,;=").find(c) != std::string::npos;
}

std::optional<net::Port> parse_port(std::string_view digits) {
  std::uint16_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value == 0) {
    return std::nullopt;
  }
  return net::Port{value};
}

struct Authority {
  std::string_view host;
  std::string_view port;  // "" when absent
};

std::optional<Authority> split_authority(std::string_view text) {
  Authority out;
  std::string_view rest;
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    if (close == std::string_view::npos) {
      return std::nullopt;
    }
    out.host = text.substr(1, close - 1);
    rest = text.substr(close + 1);
    const auto ip = net::parse_ip(out.host);
    if (!ip || out.host.find(':') == std::string_view::npos) {
      return std::nullopt;
    }
  } else {
    const auto colon = std::min(text.find(':'), text.size());
    out.host = text.substr(0, colon);
    rest = text.substr(colon);
    if (!std::ranges::all_of(out.host, is_host_character)) {
      return std::nullopt;
    }
  }
  if (!rest.empty() && (rest[0] != ':' || rest.size() == 1)) {
    return std::nullopt;
  }
  out.port = rest.empty() ? rest : rest.substr(1);
  return out.host.empty() ? std::nullopt : std::optional(out);
}

}  // namespace

std::string ServerUrl::host_header() const {
  const bool brackets = host.find(':') != std::string::npos;
  return (brackets ? "[" + host + "]" : host) + ":" + std::to_string(net::number(port));
}

std::string to_string(const ServerUrl& url) {
  return (url.tls ? "https://" : "http://") + url.host_header() + url.base_path;
}

Result<ServerUrl> parse_server_url(std::string_view text) {
  ServerUrl url;
  if (text.starts_with("https://")) {
    text.remove_prefix(8);
  } else if (text.starts_with("http://")) {
    text.remove_prefix(7);
    url.tls = false;
  } else if (text.find("://") == std::string_view::npos) {
    return refuse("names no scheme: write https://host:port");
  } else {
    return refuse("is not an https URL");
  }
  if (text.find_first_of("@?#") != std::string_view::npos) {
    return refuse("must hold neither user, query nor fragment");
  }
  const auto slash = std::min(text.find('/'), text.size());
  const auto authority = split_authority(text.substr(0, slash));
  if (!authority) {
    return refuse("has no valid host and port");
  }
  url.host = authority->host;
  url.ip = net::parse_ip(url.host);
  url.port = net::Port{static_cast<std::uint16_t>(url.tls ? 443 : 80)};
  if (!authority->port.empty()) {
    const auto port = parse_port(authority->port);
    if (!port) {
      return refuse("has a bad port");
    }
    url.port = *port;
  }
  url.base_path = text.substr(slash);
  while (url.base_path.ends_with('/')) {
    url.base_path.pop_back();
  }
  if (!std::ranges::all_of(url.base_path, is_path_character)) {
    return refuse("has a path with characters that need encoding");
  }
  if (!url.tls && !(url.ip && net::is_loopback(*url.ip))) {
    return refuse("is plain http: only https is used, except on loopback addresses");
  }
  return url;
}

}  // namespace shunt::apiserver
