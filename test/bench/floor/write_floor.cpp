#include "bench/floor/write_floor.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>

#include "backend/nft/program.h"
#include "backend/nft/wire.h"
#include "netlink/batch.h"
#include "netlink/socket.h"

namespace shunt::bench {
namespace {

using Steady = std::chrono::steady_clock;

constexpr std::size_t kElementListLimit = std::size_t{60} * 1024;  // a nested attribute: 64 KiB
constexpr std::uint8_t kTcp = 6;

void check(const Result<>& result) {
  if (!result) {
    throw std::runtime_error(result.error().what);
  }
}

// The parts of keys and data, each padded to four bytes, as the sets want them.
class Field {
 public:
  Field& big_endian(std::uint32_t value) {
    return part(
        {static_cast<std::uint8_t>(value >> 24),
         static_cast<std::uint8_t>(value >> 16),
         static_cast<std::uint8_t>(value >> 8),
         static_cast<std::uint8_t>(value)});
  }
  Field& port(std::uint16_t value) {
    return part({static_cast<std::uint8_t>(value >> 8), static_cast<std::uint8_t>(value), 0, 0});
  }
  Field& byte(std::uint8_t value) { return part({value, 0, 0, 0}); }
  Field& host_order(std::uint32_t value) {
    return part(std::bit_cast<std::array<std::uint8_t, 4>>(value));
  }
  std::span<const std::uint8_t> span() const { return {bytes_.data(), size_}; }

 private:
  Field& part(const std::array<std::uint8_t, 4>& bytes) {
    std::memcpy(bytes_.data() + size_, bytes.data(), bytes.size());
    size_ += bytes.size();
    return *this;
  }
  std::array<std::uint8_t, 24> bytes_{};
  std::size_t size_ = 0;
};

Field frontend_key(std::size_t service) {
  return Field().big_endian(0x0a600001U + static_cast<std::uint32_t>(service)).byte(kTcp).port(80);
}

// Collects elements into messages, each of one set and up to 60 KiB, of one transaction.
class Writer {
 public:
  explicit Writer(netlink::Socket& socket) : socket_(socket) {}

  void add(
      const std::string& set,
      std::span<const std::uint8_t> key,
      std::span<const std::uint8_t> data,
      std::span<const std::uint8_t> userdata) {
    if (!batch_) {
      batch_.emplace(NFNL_SUBSYS_NFTABLES);
    }
    if (set != set_ || batch_->nest_size(list_) >= kElementListLimit) {
      end_message();
      begin_message(set, NFT_MSG_NEWSETELEM);
    }
    put(key, data, userdata);
    ++elements;
  }
  void commit() {
    if (batch_) {
      end_message();
      check(socket_.commit(*batch_));
      batch_.reset();
    }
  }
  void remove(const std::string& set, std::span<const std::uint8_t> key) {
    batch_.emplace(NFNL_SUBSYS_NFTABLES);
    begin_message(set, NFT_MSG_DELSETELEM);
    put(key, {}, {});
  }

  std::uint64_t elements = 0;

 private:
  void begin_message(const std::string& set, std::uint16_t type) {
    batch_->begin(type, type == NFT_MSG_NEWSETELEM ? NLM_F_CREATE : 0, NFPROTO_IPV4);
    batch_->put_string(NFTA_SET_ELEM_LIST_TABLE, backend::nft::kTable);
    batch_->put_string(NFTA_SET_ELEM_LIST_SET, set);
    list_ = batch_->nest(NFTA_SET_ELEM_LIST_ELEMENTS);
    set_ = set;
  }
  void end_message() {
    if (!set_.empty()) {
      batch_->end_nest(list_);
      batch_->end();
      set_.clear();
    }
  }
  void put(
      std::span<const std::uint8_t> key,
      std::span<const std::uint8_t> data,
      std::span<const std::uint8_t> userdata) {
    const std::size_t item = batch_->nest(NFTA_LIST_ELEM);
    put_value(NFTA_SET_ELEM_KEY, key);
    if (!data.empty()) {
      put_value(NFTA_SET_ELEM_DATA, data);
    }
    if (!userdata.empty()) {
      batch_->put(NFTA_SET_ELEM_USERDATA, userdata);
    }
    batch_->end_nest(item);
  }
  void put_value(std::uint16_t attribute, std::span<const std::uint8_t> bytes) {
    const std::size_t nest = batch_->nest(attribute);
    batch_->put(NFTA_DATA_VALUE, bytes);
    batch_->end_nest(nest);
  }

  netlink::Socket& socket_;
  std::optional<netlink::Batch> batch_;
  std::string set_;
  std::size_t list_ = 0;
};

// What the program's sets hold for Services `begin` to `end`: the same elements that the back end
// writes, set after set.
void add_services(Writer& writer, const WriteSize& size, std::size_t begin, std::size_t end) {
  const std::string klass =
      "class-" + std::to_string(std::max<std::size_t>(std::bit_ceil(size.endpoints), 4));
  for (std::size_t s = begin; s < end; ++s) {
    writer.add("cluster-ips", frontend_key(s).span().first(4), {}, {});
  }
  for (std::size_t s = begin; s < end; ++s) {
    const std::string name = "load/load-" + std::to_string(s) + ":p";
    std::vector<std::uint8_t> comment{0, static_cast<std::uint8_t>(name.size() + 1)};
    comment.insert(comment.end(), name.begin(), name.end());
    comment.push_back(0);
    writer.add("service-ips", frontend_key(s).span(), {}, comment);
  }
  for (std::size_t s = begin; s < end; ++s) {
    for (std::size_t e = 0; e < size.endpoints; ++e) {
      const std::size_t pod = s * size.endpoints + e + 1;
      writer.add(
          "endpoints",
          frontend_key(s).host_order(static_cast<std::uint32_t>(e)).span(),
          Field().big_endian(0x0a800000U + static_cast<std::uint32_t>(pod)).port(8080).span(),
          {});
    }
  }
  for (std::size_t s = begin; size.endpoints > 0 && s < end; ++s) {
    writer.add(klass, frontend_key(s).span(), {}, {});
  }
}

double dump_everything(netlink::Socket& socket, const backend::nft::Program& program) {
  const auto begin = Steady::now();
  for (const backend::nft::Set& set : program.sets) {
    netlink::Attributes attributes;
    attributes.put_string(NFTA_SET_ELEM_LIST_TABLE, backend::nft::kTable);
    attributes.put_string(NFTA_SET_ELEM_LIST_SET, set.name);
    check(socket.dump(
        NFNL_SUBSYS_NFTABLES, NFT_MSG_GETSETELEM, NFPROTO_IPV4, attributes.bytes(), [](auto) {}));
  }
  return std::chrono::duration<double>(Steady::now() - begin).count();
}

std::vector<double> write_singles(Writer& writer, std::size_t count) {
  std::vector<double> out;
  const Field key = frontend_key(0xfffff).host_order(0);
  const Field data = Field().big_endian(0x0a400001U).port(8080);
  for (std::size_t i = 0; i < count; ++i) {
    const auto begin = Steady::now();
    if (i % 2 == 0) {
      writer.add("endpoints", key.span(), data.span(), {});
    } else {
      writer.remove("endpoints", key.span());
    }
    writer.commit();
    out.push_back(std::chrono::duration<double, std::milli>(Steady::now() - begin).count());
  }
  return out;
}

}  // namespace

WriteFloor write_elements(const WriteSize& size) {
  const backend::nft::Program program = backend::nft::make_program(net::Family::IPv4, {});
  auto transport = backend::nft::KernelTransport::open();
  auto socket = netlink::Socket::open();
  if (!transport || !socket) {
    throw std::runtime_error("no netlink socket");
  }
  backend::nft::Transaction layout;
  layout.replace_program = &program;
  if (const auto done = (*transport)->commit(program, layout); !done) {
    throw std::runtime_error("the program's sets: " + done.error().what);
  }

  WriteFloor out;
  const auto begin = Steady::now();
  Writer writer(**socket);
  const std::size_t step =
      std::max<std::size_t>(size.elements_a_transaction / (size.endpoints + 3), 1);
  for (std::size_t s = 0; s < size.services; s += step) {
    add_services(writer, size, s, std::min(s + step, size.services));
    writer.commit();
  }
  out.seconds = std::chrono::duration<double>(Steady::now() - begin).count();
  out.elements = writer.elements;
  if (size.dump) {
    out.dump_seconds = dump_everything(**socket, program);
  }
  out.single_ms = write_singles(writer, size.singles);
  return out;
}

}  // namespace shunt::bench
