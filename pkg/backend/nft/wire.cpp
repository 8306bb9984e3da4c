#include "backend/nft/wire.h"

#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include <algorithm>

#include "backend/nft/once_each.h"
#include "backend/nft/wire_rules.h"
#include "netlink/attributes.h"
#include "netlink/batch.h"

namespace shunt::backend::nft {
namespace {

using netlink::AttributeBytes;

// A nested attribute holds at most 64 KiB; an element of ours is below 512 bytes.
constexpr std::size_t kElementListLimit = std::size_t{60} * 1024;
// About what an element takes in a message.
constexpr std::size_t kElementSize = 72;
// Look-ups whose answers surely fit into the receive buffer.
constexpr std::size_t kAnswersAtOnce = 512;
constexpr std::uint8_t kUserdataComment =
    0;  // NFTNL_UDATA_*_COMMENT of tables, chains, rules and elements
constexpr std::uint16_t kKeyEnd = 10;  // NFTA_SET_ELEM_KEY_END, since Linux 5.6

std::uint8_t family_number(net::Family family) {
  return family == net::Family::IPv4 ? NFPROTO_IPV4 : NFPROTO_IPV6;
}

std::vector<std::uint8_t> comment_userdata(const std::string& comment) {
  const std::string cut = comment.substr(0, kMaxComment);
  std::vector<std::uint8_t> out(cut.size() + 3);  // ends with a NUL
  out[0] = kUserdataComment;
  out[1] = static_cast<std::uint8_t>(cut.size() + 1);
  std::copy(cut.begin(), cut.end(), out.begin() + 2);
  return out;
}

std::string comment_of(AttributeBytes userdata) {
  while (userdata.size() >= 2 && userdata.size() >= std::size_t{2} + userdata[1]) {
    const std::size_t length = userdata[1];
    if (userdata[0] == kUserdataComment) {
      return std::string(netlink::attribute_text(userdata.subspan(2, length)));
    }
    userdata = userdata.subspan(2 + length);
  }
  return {};
}

// The key with the last value of its last part.
KeyBytes end_of_interval(const Element& element) {
  KeyBytes end = element.key;
  std::copy_n(
      element.data.bytes.begin(),
      element.data.size,
      end.bytes.begin() + (end.size - element.data.size));
  return end;
}

void put_data(netlink::Messages& out, const Set& set, const Element& element) {
  if (set.holds == Set::Holds::Endpoints) {
    const std::size_t data = out.nest(NFTA_SET_ELEM_DATA);
    out.put(NFTA_DATA_VALUE, element.data.span());
    out.end_nest(data);
  } else if (set.holds == Set::Holds::Verdicts) {
    const std::size_t data = out.nest(NFTA_SET_ELEM_DATA);
    const std::size_t verdict = out.nest(NFTA_DATA_VERDICT);
    const int code = element.jump ? NFT_JUMP : NFT_GOTO;
    out.put_be32(NFTA_VERDICT_CODE, static_cast<std::uint32_t>(code));
    out.put_string(NFTA_VERDICT_CHAIN, element.text);
    out.end_nest(verdict);
    out.end_nest(data);
  } else if (!element.text.empty()) {
    out.put(NFTA_SET_ELEM_USERDATA, comment_userdata(element.text));
  }
}

void put_element(netlink::Messages& out, const Set& set, const Element& element, bool add) {
  const std::size_t item = out.nest(NFTA_LIST_ELEM);
  const std::size_t key = out.nest(NFTA_SET_ELEM_KEY);
  out.put(NFTA_DATA_VALUE, element.key.span());
  out.end_nest(key);
  if (element.interval_end) {
    out.put_be32(NFTA_SET_ELEM_FLAGS, NFT_SET_ELEM_INTERVAL_END);
  }
  if (set.shape == KeyShape::FrontendSource) {
    const std::size_t end = out.nest(kKeyEnd);
    out.put(NFTA_DATA_VALUE, end_of_interval(element).span());
    out.end_nest(end);
  }
  if (add) {
    put_data(out, set, element);
  }
  out.end_nest(item);
}

// One message about elements of a set; `put` is given the nest that it fills with them.
template <typename Put>
void put_message(
    netlink::Messages& out,
    std::uint16_t type,
    std::uint16_t flags,
    const Set& set,
    std::uint8_t family,
    const Put& put) {
  out.begin(type, flags, family);
  out.put_string(NFTA_SET_ELEM_LIST_TABLE, kTable);
  out.put_string(NFTA_SET_ELEM_LIST_SET, set.name);
  const std::size_t list = out.nest(NFTA_SET_ELEM_LIST_ELEMENTS);
  put(list);
  out.end_nest(list);
  out.end();
}

void put_elements(
    netlink::Batch& batch,
    const Set& set,
    std::span<const Element> elements,
    bool add,
    std::uint8_t family) {
  const std::uint16_t type = add ? NFT_MSG_NEWSETELEM : NFT_MSG_DELSETELEM;
  const std::uint16_t flags = add ? NLM_F_CREATE : 0;
  std::size_t i = 0;
  while (i < elements.size()) {
    put_message(batch, type, flags, set, family, [&](std::size_t list) {
      while (i < elements.size() && batch.nest_size(list) < kElementListLimit) {
        put_element(batch, set, elements[i++], add);
      }
    });
  }
}

void put_question(
    netlink::Messages& out, const Set& set, std::span<const KeyBytes> keys, std::uint8_t family) {
  put_message(out, NFT_MSG_GETSETELEM, 0, set, family, [&](std::size_t) {
    for (const KeyBytes& key : keys) {
      put_element(out, set, {key, {}, false, {}, false}, false);
    }
  });
}

void put_changes(netlink::Batch& batch, const Program& program, const ElementChanges& changes) {
  const std::uint8_t family = family_number(program.family);
  for (const SetId emptied : changes.emptied) {
    batch.begin(NFT_MSG_DELSETELEM, 0, family);  // without a list: all of them
    batch.put_string(NFTA_SET_ELEM_LIST_TABLE, kTable);
    batch.put_string(NFTA_SET_ELEM_LIST_SET, set_in(program, emptied).name);
    batch.end();
  }
  for (const Set& set : program.sets) {
    put_elements(batch, set, changes.deletions[static_cast<std::size_t>(set.id)], false, family);
  }
  for (const Set& set : program.sets) {
    put_elements(batch, set, changes.additions[static_cast<std::size_t>(set.id)], true, family);
  }
}

void put_table(netlink::Batch& batch, std::uint16_t type, const Program& program) {
  const bool add = type == NFT_MSG_NEWTABLE;
  batch.begin(
      type, static_cast<std::uint16_t>(add ? NLM_F_CREATE : 0), family_number(program.family));
  batch.put_string(NFTA_TABLE_NAME, kTable);
  if (add) {
    batch.put_be32(NFTA_TABLE_FLAGS, 0);
    batch.put(NFTA_TABLE_USERDATA, comment_userdata(program.comment));
  }
  batch.end();
}

template <std::size_t N>
bool copy_value(AttributeBytes nested, Bytes<N>& out) {
  const auto value = netlink::find_attribute(nested, NFTA_DATA_VALUE);
  if (!value || value->size() > N) {
    return false;
  }
  out = {};
  out.append(value->data(), value->size());
  return true;
}

void read_data(AttributeBytes payload, Element& element) {
  const auto verdict = netlink::find_attribute(payload, NFTA_DATA_VERDICT);
  if (!verdict) {
    (void)copy_value(payload, element.data);  // of another size than ours: it stays empty
    return;
  }
  if (const auto code = netlink::find_attribute(*verdict, NFTA_VERDICT_CODE)) {
    element.jump = netlink::attribute_be32(*code) == static_cast<std::uint32_t>(NFT_JUMP);
  }
  if (const auto chain = netlink::find_attribute(*verdict, NFTA_VERDICT_CHAIN)) {
    element.text = netlink::attribute_text(*chain);
  }
}

// The last part of the key at the end of an interval; `shape` says how long that part is.
void read_key_end(AttributeBytes payload, KeyShape shape, Element& element) {
  KeyBytes end;
  if (shape != KeyShape::FrontendSource || !copy_value(payload, end) || end.size < 16) {
    return;
  }
  const std::size_t part = (end.size - std::size_t{8}) / 2;
  element.data.append(end.bytes.data() + (end.size - part), part);
}

// False when the element has no key that we could have written.
bool read_element(AttributeBytes item, KeyShape shape, Element& element) {
  bool has_key = false;
  netlink::for_each_attribute(item, [&](std::uint16_t type, AttributeBytes payload) {
    if (type == NFTA_SET_ELEM_KEY) {
      has_key = copy_value(payload, element.key);
    } else if (type == NFTA_SET_ELEM_DATA) {
      read_data(payload, element);
    } else if (type == kKeyEnd) {
      read_key_end(payload, shape, element);
    } else if (type == NFTA_SET_ELEM_FLAGS) {
      element.interval_end = (netlink::attribute_be32(payload) & NFT_SET_ELEM_INTERVAL_END) != 0;
    } else if (type == NFTA_SET_ELEM_USERDATA) {
      element.text = comment_of(payload);
    }
  });
  return has_key;
}

// Calls `each` for every attribute of a message, when the message is of our table.
template <typename Each>
void for_each_of_ours(AttributeBytes message, std::uint16_t table_attribute, const Each& each) {
  const auto table = netlink::find_attribute(message, table_attribute);
  if (table && netlink::attribute_text(*table) == kTable) {
    netlink::for_each_attribute(message, each);
  }
}

// Calls `each` for every element in a message, when it is of our table: what it says, and its
// attributes.
template <typename Each>
void for_each_element(AttributeBytes message, const Set& set, const Each& each) {
  const auto list = [&](AttributeBytes items) {
    netlink::for_each_attribute(items, [&](std::uint16_t, AttributeBytes item) {
      Element element;
      if (read_element(item, set.shape, element)) {
        each(std::move(element), item);
      }
    });
  };
  for_each_of_ours(
      message, NFTA_SET_ELEM_LIST_TABLE, [&](std::uint16_t type, AttributeBytes payload) {
        if (type == NFTA_SET_ELEM_LIST_ELEMENTS) {
          list(payload);
        }
      });
}

// 0 when it counts nothing.
std::uint64_t counted_packets(AttributeBytes item) {
  const auto expression = netlink::find_attribute(item, NFTA_SET_ELEM_EXPR);
  const auto data =
      expression ? netlink::find_attribute(*expression, NFTA_EXPR_DATA) : std::nullopt;
  const auto packets = data ? netlink::find_attribute(*data, NFTA_COUNTER_PACKETS) : std::nullopt;
  return packets ? netlink::attribute_be64(*packets) : 0;
}

std::vector<std::uint8_t> table_selector(std::uint16_t attribute) {
  std::vector<std::uint8_t> out(MNL_ALIGN(sizeof(nlattr) + sizeof kTable));
  const nlattr head{static_cast<std::uint16_t>(sizeof(nlattr) + sizeof kTable), attribute};
  std::memcpy(out.data(), &head, sizeof head);
  std::memcpy(out.data() + sizeof head, kTable, sizeof kTable);
  return out;
}

}  // namespace

Result<std::unique_ptr<KernelTransport>> KernelTransport::open() {
  auto socket = netlink::Socket::open();
  if (!socket) {
    return tl::unexpected(socket.error());
  }
  return std::unique_ptr<KernelTransport>(new KernelTransport(std::move(*socket)));
}

Result<TableState> KernelTransport::read_table(net::Family family) {
  TableState state;
  const std::uint8_t number = family_number(family);
  const auto dump = [&](std::uint16_t type, std::uint16_t selector, const auto& each) {
    const auto attributes = table_selector(selector);
    return socket_->dump(NFNL_SUBSYS_NFTABLES, type, number, attributes, each);
  };
  auto done = dump(NFT_MSG_GETTABLE, NFTA_TABLE_NAME, [&](AttributeBytes message) {
    for_each_of_ours(message, NFTA_TABLE_NAME, [&](std::uint16_t type, AttributeBytes payload) {
      state.exists = true;
      if (type == NFTA_TABLE_USERDATA) {
        state.comment = comment_of(payload);
      }
    });
  });
  if (!done || !state.exists) {
    return done.map([&] { return state; });
  }
  done = dump(NFT_MSG_GETSET, NFTA_SET_TABLE, [&](AttributeBytes message) {
    for_each_of_ours(message, NFTA_SET_TABLE, [&](std::uint16_t type, AttributeBytes payload) {
      if (type == NFTA_SET_NAME) {
        state.sets.emplace_back(netlink::attribute_text(payload));
      }
    });
  });
  if (done) {
    done = dump(NFT_MSG_GETCHAIN, NFTA_CHAIN_TABLE, [&](AttributeBytes message) {
      for_each_of_ours(message, NFTA_CHAIN_TABLE, [&](std::uint16_t type, AttributeBytes payload) {
        if (type == NFTA_CHAIN_NAME) {
          state.rules.try_emplace(std::string(netlink::attribute_text(payload)), 0);
        }
      });
    });
  }
  if (done) {
    done = dump(NFT_MSG_GETRULE, NFTA_RULE_TABLE, [&](AttributeBytes message) {
      for_each_of_ours(message, NFTA_RULE_TABLE, [&](std::uint16_t type, AttributeBytes payload) {
        if (type == NFTA_RULE_CHAIN) {
          ++state.rules[std::string(netlink::attribute_text(payload))];
        }
      });
    });
  }
  return done.map([&] { return state; });
}

Result<> KernelTransport::list(net::Family family, const Set& set, const EachElement& each) {
  auto attributes = table_selector(NFTA_SET_ELEM_LIST_TABLE);
  const nlattr head{
      static_cast<std::uint16_t>(sizeof(nlattr) + set.name.size() + 1), NFTA_SET_ELEM_LIST_SET};
  const std::size_t at = attributes.size();
  attributes.resize(at + sizeof head + MNL_ALIGN(set.name.size() + 1));
  std::memcpy(attributes.data() + at, &head, sizeof head);
  std::memcpy(attributes.data() + at + sizeof head, set.name.data(), set.name.size());

  OnceEach once;
  auto done = socket_->dump(
      NFNL_SUBSYS_NFTABLES,
      NFT_MSG_GETSETELEM,
      family_number(family),
      attributes,
      [&](AttributeBytes message) {
        for_each_element(message, set, [&](Element&& element, AttributeBytes item) {
          if (!set.interval && !set.dynamic()) {
            once.add(element.key);
          }
          each(std::move(element), item);
        });
      });
  if (done && once.broken()) {
    return fail(Errc::Again, "the kernel grew a set during the dump", EINTR);
  }
  return done;
}

Result<> KernelTransport::read_elements(
    net::Family family, const Set& set, const std::function<void(Element&&)>& each) {
  return list(family, set, [&](Element&& element, AttributeBytes) { each(std::move(element)); });
}

Result<> KernelTransport::read_counters(
    net::Family family,
    const Set& set,
    const std::function<void(Element&&, std::uint64_t packets)>& each) {
  return list(family, set, [&](Element&& element, AttributeBytes item) {
    each(std::move(element), counted_packets(item));
  });
}

Result<> KernelTransport::ask(
    netlink::Messages& questions, const Set& set, const std::function<void(Element&&)>& each) {
  std::vector<netlink::MessageError> errors;
  auto done = socket_->ask(questions, errors, [&](AttributeBytes message) {
    for_each_element(
        message, set, [&](Element&& element, AttributeBytes) { each(std::move(element)); });
  });
  questions.clear();
  if (!done) {
    return done;
  }
  for (const netlink::MessageError& error : errors) {
    if (error.sys_errno != ENOENT) {
      return fail(netlink::errc_of(error.sys_errno), "look-up of elements", error.sys_errno);
    }
  }
  return {};
}

// A run is a message, or several when it is long; the kernel answers a message up to its first key
// that is not there.
Result<> KernelTransport::find_elements(
    net::Family family,
    const Set& set,
    const KeyRuns& runs,
    const std::function<void(Element&&)>& each) {
  netlink::Messages questions(NFNL_SUBSYS_NFTABLES);
  std::size_t asked = 0;
  std::span<const KeyBytes> keys(runs.keys);
  for (const std::size_t length : runs.lengths) {
    auto run = keys.first(length);
    keys = keys.subspan(length);
    while (!run.empty()) {
      const auto part = run.first(std::min(run.size(), kAnswersAtOnce));
      run = run.subspan(part.size());
      if (asked + part.size() > kAnswersAtOnce) {
        if (auto done = ask(questions, set, each); !done) {
          return done;
        }
        asked = 0;
      }
      put_question(questions, set, part, family_number(family));
      asked += part.size();
    }
  }
  return ask(questions, set, each);
}

Result<> KernelTransport::delete_elements(
    net::Family family, const Set& set, std::span<const Element> elements) {
  netlink::Batch batch(NFNL_SUBSYS_NFTABLES);
  put_elements(batch, set, elements, false, family_number(family));
  return socket_->commit(batch);
}

Result<Cost> KernelTransport::commit(const Program& program, const Transaction& transaction) {
  netlink::Batch batch(NFNL_SUBSYS_NFTABLES);
  batch.reserve(transaction.changes.count * kElementSize);
  const std::uint8_t family = family_number(program.family);
  if (transaction.delete_table) {
    put_table(batch, NFT_MSG_DELTABLE, program);
  }
  if (transaction.replace_program != nullptr) {
    put_table(batch, NFT_MSG_NEWTABLE, program);
    put_fragment(batch, *transaction.replace_program, family);
  }
  if (transaction.rewrite_rules != nullptr) {
    put_rules_anew(batch, *transaction.rewrite_rules, family);
  }
  for (const Fragment& fragment : transaction.create) {
    put_fragment(batch, fragment, family);
  }
  put_changes(batch, program, transaction.changes);
  put_removal(batch, transaction.remove, family);
  if (batch.empty()) {
    return Cost{};
  }
  const Clock::time_point before = Clock::now();
  if (auto done = socket_->commit(batch); !done) {
    return tl::unexpected(done.error());
  }
  return Cost{1, batch.messages(), batch.size(), transaction.changes.count, Clock::now() - before};
}

}  // namespace shunt::backend::nft
