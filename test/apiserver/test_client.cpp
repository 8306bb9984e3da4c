#include "test/apiserver/test_client.h"

#include <fmt/format.h>
#include <httplib.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace shunt::test_api {
namespace {

Reply to_reply(const httplib::Result& result) {
  Reply reply;
  if (result) {
    reply.code = result->status;
    reply.body = result->body;
    for (const auto& [name, value] : result->headers) {
      reply.headers.emplace(name, value);
    }
  }
  return reply;
}

httplib::Headers to_httplib(const Headers& headers) {
  httplib::Headers out;
  for (const auto& [name, value] : headers) {
    out.emplace(name, value);
  }
  return out;
}

}  // namespace

TempDir::TempDir() {
  std::string pattern = (std::filesystem::temp_directory_path() / "apiserver-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw std::runtime_error("mkdtemp");
  }
  path_ = pattern;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

TestServer::TestServer(const std::function<void(ServerOptions&)>& adjust) {
  options_.listen = {*net::parse_socket_address("127.0.0.1:0")};
  options_.insecure_listen = options_.listen;
  options_.pki = dir_.path() + "/pki";
  if (adjust) {
    adjust(options_);
  }
  start();
}

void TestServer::start() {
  auto started = Server::start(options_);
  if (!started) {
    throw std::runtime_error(started.error().what);
  }
  server_ = std::move(*started);
}

void TestServer::restart() {
  options_.listen = server_->addresses();
  options_.insecure_listen = server_->insecure_addresses();
  server_.reset();
  start();
}

std::uint16_t TestServer::plain_port() const {
  return net::number(server_->insecure_addresses().front().port);
}

std::uint16_t TestServer::tls_port() const {
  return net::number(server_->addresses().front().port);
}

Reply TestServer::call(
    const std::string& method,
    const std::string& target,
    const std::string& body,
    const Headers& headers) {
  httplib::Client client("127.0.0.1", plain_port());
  httplib::Request request;
  request.method = method;
  request.path = target;
  request.body = body;
  request.headers = to_httplib(headers);
  return to_reply(client.send(request));
}

void TestServer::apply(const std::string& manifests, const std::string& query) {
  const Reply reply = call("POST", "/_test/apply" + query, manifests);
  if (reply.code != 200) {
    throw std::runtime_error("apply: " + reply.body);
  }
}

Json TestServer::faults(const std::string& list) {
  const Reply reply = call("PUT", "/_test/faults", list);
  if (reply.code != 200) {
    throw std::runtime_error("faults: " + reply.body);
  }
  return reply.json();
}

Reply TestServer::tls_get(
    const std::string& target, const std::string& certificate, const Headers& headers) {
  httplib::SSLClient client(
      "127.0.0.1",
      tls_port(),
      certificate.empty() ? "" : certificate + ".crt",
      certificate.empty() ? "" : certificate + ".key");
  client.set_ca_cert_path((options_.pki + "/ca.crt").c_str());
  client.enable_server_certificate_verification(true);
  return to_reply(client.Get(target, to_httplib(headers)));
}

LineClient::LineClient(TestServer& server, const std::string& target, const std::string& accept)
    : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(server.plain_port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::string request = "GET " + target + " HTTP/1.1\r\nHost: test\r\n" +
                              (accept.empty() ? "" : "Accept: " + accept + "\r\n") + "\r\n";
  if (::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::send(fd_.get(), request.data(), request.size(), MSG_NOSIGNAL) !=
          static_cast<ssize_t>(request.size())) {
    throw std::runtime_error("connect");
  }
}

bool LineClient::fill(std::chrono::steady_clock::time_point deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  pollfd waiting{fd_.get(), POLLIN, 0};
  if (left.count() <= 0 || ::poll(&waiting, 1, static_cast<int>(left.count())) <= 0) {
    return false;
  }
  std::array<char, 65536> bytes{};
  const ssize_t got = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
  if (got <= 0) {
    state_ = State::Cut;  // a proper end is the last chunk, not the end of the connection
    return false;
  }
  raw_.append(bytes.data(), static_cast<std::size_t>(got));
  decode();
  return true;
}

void LineClient::decode() {
  if (head_.empty()) {
    const std::size_t end = raw_.find("\r\n\r\n");
    if (end == std::string::npos) {
      return;
    }
    head_ = raw_.substr(0, end + 2);
    raw_.erase(0, end + 4);
  }
  while (state_ == State::Open) {
    const std::size_t end = raw_.find("\r\n");
    if (end == std::string::npos) {
      return;
    }
    const std::size_t size = std::stoul(raw_, nullptr, 16);
    if (raw_.size() < end + 2 + size + 2) {
      return;
    }
    body_ += raw_.substr(end + 2, size);
    raw_.erase(0, end + 2 + size + 2);
    state_ = size == 0 ? State::Ended : State::Open;
  }
}

std::optional<std::string> LineClient::take(
    const std::function<std::optional<std::size_t>()>& measure,
    std::size_t separator,
    std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    if (const auto size = measure()) {
      std::string out = body_.substr(0, *size);
      body_.erase(0, *size + separator);
      return out;
    }
    if (state_ != State::Open || !fill(deadline)) {
      return std::nullopt;
    }
  }
}

std::optional<std::string> LineClient::line(std::chrono::milliseconds patience) {
  const auto to_line_end = [this]() -> std::optional<std::size_t> {
    const std::size_t end = body_.find('\n');
    return end == std::string::npos ? std::nullopt : std::optional(end);
  };
  return take(to_line_end, 1, patience);
}

std::optional<std::string> LineClient::frame(std::chrono::milliseconds patience) {
  const auto to_frame_end = [this]() -> std::optional<std::size_t> {
    if (body_.size() < 4) {
      return std::nullopt;
    }
    std::size_t length = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      length = (length << 8U) | static_cast<unsigned char>(body_[i]);
    }
    return body_.size() < 4 + length ? std::nullopt : std::optional(4 + length);
  };
  auto bytes = take(to_frame_end, 0, patience);
  return bytes ? std::optional(bytes->substr(4)) : std::nullopt;
}

Json LineClient::event(std::chrono::milliseconds patience) {
  return Json::parse(line(patience).value_or(""), nullptr, false);
}

LineClient::State LineClient::finish(std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (state_ == State::Open && fill(deadline)) {
  }
  return state_;
}

std::string summary(const Json& event) {
  if (!event.is_object()) {
    return "nothing";
  }
  const Json& object = event["object"];
  if (event["type"] == "ERROR") {
    return fmt::format("ERROR {}", object.value("code", 0));
  }
  const Json& metadata = object["metadata"];
  const std::string ns = text_at(metadata, "namespace");
  const std::string name = text_at(metadata, "name");
  return text_at(event, "type") + (name.empty() ? "" : " " + object_key(ns, name));
}

std::string recording(const std::string& name) {
  std::ifstream file(std::string(SHUNT_SOURCE_DIR) + "/test/recordings/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string service(const std::string& name, const std::string& more_metadata) {
  return fmt::format(
      "---\napiVersion: v1\nkind: Service\nmetadata:\n  name: {}\n  namespace: shop\n{}"
      "spec:\n  clusterIP: 10.96.0.10\n  ports:\n  - port: 80\n",
      name,
      more_metadata);
}

}  // namespace shunt::test_api
