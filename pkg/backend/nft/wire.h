// Ruleset values <-> nf_tables netlink messages. The one home of libnftnl.
#pragma once

#include <memory>

#include "backend/nft/transport.h"
#include "netlink/messages.h"
#include "netlink/socket.h"

namespace shunt::backend::nft {

// Speaks to the kernel of the network namespace that the thread was in when this was opened. One
// thread.
class KernelTransport : public Transport {
 public:
  static Result<std::unique_ptr<KernelTransport>> open();
  // The number by which the kernel names what this one changes (change_feed.h).
  std::uint32_t port() const { return socket_->port(); }

  Result<TableState> read_table(net::Family family) override;
  Result<> read_elements(
      net::Family family, const Set& set, const std::function<void(Element&&)>& each) override;
  Result<> find_elements(
      net::Family family,
      const Set& set,
      const KeyRuns& runs,
      const std::function<void(Element&&)>& each) override;
  Result<> delete_elements(
      net::Family family, const Set& set, std::span<const Element> elements) override;
  // The elements of a set that counts, with the packets that each has counted.
  Result<> read_counters(
      net::Family family,
      const Set& set,
      const std::function<void(Element&&, std::uint64_t packets)>& each);
  Result<Cost> commit(const Program& program, const Transaction& transaction) override;

 private:
  using EachElement = std::function<void(Element&&, std::span<const std::uint8_t> attributes)>;
  Result<> list(net::Family family, const Set& set, const EachElement& each);
  // Sends the questions and reads what is there.
  Result<> ask(
      netlink::Messages& questions, const Set& set, const std::function<void(Element&&)>& each);

  explicit KernelTransport(std::unique_ptr<netlink::Socket> socket) : socket_(std::move(socket)) {}
  std::unique_ptr<netlink::Socket> socket_;
};

}  // namespace shunt::backend::nft
