// What a real API server said (test/recordings/README.md), decoded.
#include "kube/testing/recordings.h"

#include <catch2/catch_test_macros.hpp>
#include <map>

#include "kube/decode_json.h"

namespace shunt::kube {
namespace {

using testing::contents;
using testing::kRecordings;

std::string recorded(const std::string& name) {
  return contents(kRecordings / (name + ".json.body"));
}

template <typename T>
DecodedList<T> decoded_list(const std::string& name) {
  auto list = decode_list<T>(recorded(name));
  INFO(name << ": " << (list ? "" : list.error().what));
  REQUIRE(list);
  CHECK(list->issues.empty());
  CHECK_FALSE(list->items.empty());
  CHECK_FALSE(list->meta.resource_version.empty());
  return std::move(*list);
}

template <typename T>
std::vector<WatchEvent<T>> decoded_watch(const std::string& name) {
  return testing::recorded_events<T, JsonFramer>(name + ".json.body", &decode_watch_event<T>);
}

template <typename T>
using State = std::map<ObjectKey, T>;

template <typename T>
State<T> state_of(const std::vector<T>& objects) {
  State<T> state;
  for (const T& object : objects) {
    CHECK(state.emplace(object.meta.key, object).second);
  }
  return state;
}

template <typename T>
void replay(const std::vector<WatchEvent<T>>& events, State<T>& state) {
  for (const WatchEvent<T>& event : events) {
    if (event.type == EventType::Bookmark) {
      continue;
    }
    REQUIRE(event.object);
    if (event.type == EventType::Deleted) {
      CHECK(state.erase(event.meta.key) == 1);
    } else {
      CHECK(state.contains(event.meta.key) == (event.type == EventType::Modified));
      state[event.meta.key] = *event.object;
    }
  }
}

TEST_CASE("every recorded JSON body decodes as what its name says") {
  std::size_t bodies = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kRecordings)) {
    const std::string file = entry.path().filename().string();
    const std::string suffix = ".json.body";
    if (!file.ends_with(suffix)) {
      continue;
    }
    const std::string name = file.substr(0, file.size() - suffix.size());
    ++bodies;
    DYNAMIC_SECTION(name) {
      const bool slices = name.find("endpointslices") != std::string::npos;
      if (name == "error-410-watch") {
        CHECK(decoded_watch<Service>(name).size() == 1);
      } else if (name.starts_with("error-")) {
        CHECK(decode_status(recorded(name)));
      } else if (name.starts_with("watch")) {
        CHECK_FALSE(
            (slices ? decoded_watch<EndpointSlice>(name).empty()
                    : decoded_watch<Service>(name).empty()));
      } else if (name.ends_with("-node")) {
        decoded_list<Node>(name);
      } else if (name.ends_with("-servicecidrs")) {
        decoded_list<ServiceCidr>(name);
      } else if (slices) {
        decoded_list<EndpointSlice>(name);
      } else {
        decoded_list<Service>(name);
      }
    }
  }
  CHECK(bodies >= 18);
}

TEST_CASE("recorded errors say what went wrong") {
  struct Case {
    const char* name;
    int code;
    const char* reason;
  };
  for (const Case& c : {
           Case{"error-401", 401, "Unauthorized"},
           Case{"error-403", 403, "Forbidden"},
           Case{"error-403-secrets", 403, "Forbidden"},
           Case{"error-404", 404, "NotFound"},
           Case{"error-future-rv", 504, "Timeout"},
       }) {
    DYNAMIC_SECTION(c.name) {
      const auto status = decode_status(recorded(c.name));
      REQUIRE(status);
      CHECK(status->code == c.code);
      CHECK(status->reason == c.reason);
      CHECK_FALSE(status->message.empty());
      // A list that was answered with an error fails, and says the reason.
      const auto list = decode_list<Service>(recorded(c.name));
      REQUIRE_FALSE(list);
      CHECK(list.error().what.find(c.reason) != std::string::npos);
    }
  }
  const auto future = decode_status(recorded("error-future-rv"));
  CHECK(future->cause_reasons == std::vector<std::string>{"ResourceVersionTooLarge"});
  CHECK(future->retry_after_seconds == 1);

  const auto gone = decoded_watch<Service>("error-410-watch");
  REQUIRE(gone.size() == 1);
  CHECK(gone[0].type == EventType::Error);
  CHECK(gone[0].status.code == 410);
  CHECK(gone[0].status.reason == "Expired");
}

TEST_CASE("a recorded dual-stack Service and its slices read as they were made") {
  const auto services = state_of(decoded_list<Service>("list-services").items);
  const Service& dual = services.at({"shop", "web-dual"});
  CHECK(dual.ip_families == std::vector<std::string>{"IPv4", "IPv6"});
  REQUIRE(dual.cluster_ips.size() == 2);
  CHECK(dual.cluster_ips[0] == dual.cluster_ip);
  CHECK(services.at({"shop", "db"}).cluster_ip == "None");
  CHECK(services.at({"shop", "outside"}).type == "ExternalName");
  CHECK(services.at({"shop", "web"}).meta.creation_seconds > 1'795'970'000);

  for (const auto& [key, slice] :
       state_of(decoded_list<EndpointSlice>("list-endpointslices").items)) {
    INFO(to_string(key));
    CHECK_FALSE(slice.service_name.empty());
    CHECK_FALSE(slice.has_headless_label);
    const auto family = slice.address_type == "IPv6" ? net::Family::IPv6 : net::Family::IPv4;
    for (const SliceEndpoint& endpoint : slice.endpoints) {
      REQUIRE(endpoint.address);
      CHECK(endpoint.address->family == family);
    }
  }
}

TEST_CASE("the recorded Node and ServiceCIDR read as they were made") {
  const Node node = decoded_list<Node>("list-node").items.at(0);
  CHECK(node.meta.key == ObjectKey{"", "node1"});
  CHECK(node.zone == "zone-z");
  CHECK_FALSE(node.deleting);
  const ServiceCidr cidr = decoded_list<ServiceCidr>("list-servicecidrs").items.at(0);
  CHECK(cidr.cidrs == std::vector<std::string>{"10.96.0.0/12", "fd00:10:96::/112"});
}

TEST_CASE("list and watch of endpoint slices reach the state of a later list") {
  const auto before = decoded_list<EndpointSlice>("list-before-watch-endpointslices");
  auto state = state_of(before.items);
  const auto events = decoded_watch<EndpointSlice>("watch-endpointslices");
  const auto later = state_of(decoded_list<EndpointSlice>("list-endpointslices").items);
  REQUIRE(state != later);
  replay(events, state);
  CHECK(state == later);
  CHECK(events.back().type == EventType::Bookmark);
}

TEST_CASE("list and watch of services reach the state of a later list") {
  auto state = state_of(decoded_list<Service>("list-before-watch-services").items);
  const auto events = decoded_watch<Service>("watch-services");
  // Listed with the same selectors as the watch: no headless Services.
  const auto later = decoded_list<Service>("list-services-noheadless");
  REQUIRE(state != state_of(later.items));
  replay(events, state);
  CHECK(state == state_of(later.items));
  CHECK(events.back().meta.resource_version == later.meta.resource_version);
}

TEST_CASE("a streamed list ends with its bookmark and equals the list") {
  const auto events = decoded_watch<Service>("watchlist-services");
  REQUIRE(events.size() > 1);
  for (std::size_t i = 0; i + 1 < events.size(); ++i) {
    CHECK(events[i].type == EventType::Added);
    CHECK_FALSE(events[i].initial_events_end);
  }
  CHECK(events.back().type == EventType::Bookmark);
  CHECK(events.back().initial_events_end);
  CHECK(events.back().meta.resource_version == "804");

  State<Service> streamed;
  replay(events, streamed);
  CHECK(streamed == state_of(decoded_list<Service>("list-services-noheadless").items));
}

TEST_CASE("pages continue until the token is empty") {
  const auto first = decoded_list<Service>("list-services-page1");
  const auto second = decoded_list<Service>("list-services-page2");
  CHECK(first.items.size() == 3);
  CHECK_FALSE(first.meta.continue_token.empty());
  CHECK(second.items.size() == 3);
  CHECK(first.meta.resource_version == second.meta.resource_version);
  auto pages = state_of(first.items);
  pages.merge(state_of(second.items));
  // The second page has a token too: a third was there, and was not recorded.
  CHECK_FALSE(second.meta.continue_token.empty());
  auto whole = state_of(decoded_list<Service>("list-services").items);
  CHECK(whole.erase({"shop", "web-dual"}) == 1);
  CHECK(pages == whole);
}

}  // namespace
}  // namespace shunt::kube
