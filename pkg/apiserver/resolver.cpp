#include "apiserver/resolver.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/handle.h"

namespace shunt::apiserver {
namespace {

using AddressList = Handle<addrinfo, freeaddrinfo>;

Result<std::vector<net::IpAddress>> look_up(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &found); error != 0) {
    return fail(Errc::Again, "cannot resolve " + host + ": " + ::gai_strerror(error));
  }
  const AddressList list(found);
  std::vector<net::IpAddress> out;
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
    net::IpAddress ip;
    if (entry->ai_family == AF_INET) {
      sockaddr_in address{};
      std::memcpy(&address, entry->ai_addr, sizeof address);
      std::memcpy(ip.bytes.data(), &address.sin_addr, 4);
    } else if (entry->ai_family == AF_INET6) {
      sockaddr_in6 address{};
      std::memcpy(&address, entry->ai_addr, sizeof address);
      ip.family = net::Family::IPv6;
      std::memcpy(ip.bytes.data(), &address.sin6_addr, 16);
    } else {
      continue;
    }
    out.push_back(ip);
  }
  if (out.empty()) {
    return fail(Errc::Again, "cannot resolve " + host + ": no address");
  }
  return out;
}

}  // namespace

// Shared by the caller, who may leave early, and the thread.
struct Resolver::Lookup {
  explicit Lookup(std::string name) : host(std::move(name)) {}
  const std::string host;
  WakeFd done;
  std::mutex mutex;
  Result<std::vector<net::IpAddress>> answer;
};

Resolver::~Resolver() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  some_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

Result<std::vector<net::IpAddress>> Resolver::resolve(
    const std::string& host, const Deadline& deadline) {
  const auto lookup = std::make_shared<Lookup>(host);
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(lookup);
    if (!thread_.joinable()) {
      thread_ = std::thread([this] { work(); });
    }
  }
  some_.notify_one();
  if (auto ready = wait_until_ready(lookup->done.fd(), Readiness::Read, deadline); !ready) {
    return fail("resolving " + host, ready.error());
  }
  const std::lock_guard lock(lookup->mutex);
  return lookup->answer;
}

void Resolver::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    some_.wait(lock, [&] { return ending_ || !waiting_.empty(); });
    if (ending_) {
      return;
    }
    const auto lookup = std::move(waiting_.front());
    waiting_.pop_front();
    if (lookup.use_count() == 1) {
      continue;  // whoever asked has given up; a slow name server must not make a queue of these
    }
    lock.unlock();
    auto answer = look_up(lookup->host);
    {
      const std::lock_guard answer_lock(lookup->mutex);
      lookup->answer = std::move(answer);
    }
    lookup->done.ring();
    lock.lock();
  }
}

}  // namespace shunt::apiserver
