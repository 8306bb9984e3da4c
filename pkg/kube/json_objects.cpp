#include "kube/json_objects.h"

#include <array>

#include "kube/timestamp.h"
#include "net/ip_address.h"

namespace shunt::kube::json {
namespace {

// --- What every object has

template <typename T>
Verdict set_creation(T& object, std::string_view text) {
  const auto time = parse_rfc3339(text);
  object.meta.creation_seconds = time ? time->seconds : 0;
  return Verdict::Fine;
}

// The fields of metadata that we read of every object, and `more` that we read of T alone.
template <typename T, typename... Fields>
constexpr std::array<Field, 5 + sizeof...(Fields)> metadata_of(Fields... more) {
  return {
      Field{"name", &value<&T::meta, &ObjectMeta::key, &ObjectKey::name>},
      Field{"namespace", &value<&T::meta, &ObjectMeta::key, &ObjectKey::name_space>},
      Field{"uid", &value<&T::meta, &ObjectMeta::uid>},
      Field{"resourceVersion", &value<&T::meta, &ObjectMeta::resource_version>},
      Field{"creationTimestamp", &text<&set_creation<T>>},
      more...};
}

// List items have no kind. In watch events a wrong one is an object that we did not ask for.
template <typename T>
Verdict check_kind(T&, std::string_view text) {
  return text.empty() || text == kind_of<T>() ? Verdict::Fine : Verdict::WrongKind;
}

// The presence of a label or of a time, whatever it says.
template <typename T, bool T::*kFlag>
Verdict set_present(T& object, std::string_view) {
  object.*kFlag = true;
  return Verdict::Fine;
}

// --- core/v1 Service

constexpr Field kServicePort[] = {
    {"name", &value<&ServicePortSpec::name>},
    {"protocol", &value<&ServicePortSpec::protocol>},
    {"port", &value<&ServicePortSpec::port>},
    {"nodePort", &value<&ServicePortSpec::node_port>},
};
constexpr Field kClientIp[] = {
    {"timeoutSeconds", &value<&Service::client_ip_timeout_seconds>},
};
constexpr Field kSessionAffinityConfig[] = {
    {"clientIP", &inside<kClientIp>},
};
constexpr Field kServiceSpec[] = {
    {"ports", &list<&Service::ports, kServicePort>},
    {"clusterIP", &value<&Service::cluster_ip>},
    {"type", &value<&Service::type>},
    {"externalIPs", &value<&Service::external_ips>},
    {"sessionAffinity", &value<&Service::session_affinity>},
    {"loadBalancerSourceRanges", &value<&Service::load_balancer_source_ranges>},
    {"externalTrafficPolicy", &value<&Service::external_traffic_policy>},
    {"healthCheckNodePort", &value<&Service::health_check_node_port>},
    {"sessionAffinityConfig", &inside<kSessionAffinityConfig>},
    {"clusterIPs", &value<&Service::cluster_ips>},
    {"ipFamilies", &value<&Service::ip_families>},
    {"internalTrafficPolicy", &value<&Service::internal_traffic_policy>},
};
constexpr Field kIngress[] = {
    {"ip", &value<&LoadBalancerIngress::ip>},
    {"ipMode", &value<&LoadBalancerIngress::ip_mode>},
};
constexpr Field kLoadBalancer[] = {
    {"ingress", &list<&Service::ingress, kIngress>},
};
constexpr Field kServiceStatus[] = {
    {"loadBalancer", &inside<kLoadBalancer>},
};
constexpr Field kServiceLabels[] = {
    {kServiceProxyNameLabel, &text<&set_present<Service, &Service::has_proxy_name_label>>},
};
// The beginning of an annotation, so that a long one takes no memory.
template <std::string Service::*kMember, std::size_t kMax>
Verdict set_beginning(Service& service, std::string_view text) {
  service.*kMember = text.substr(0, kMax + 1);
  return Verdict::Fine;
}
constexpr Field kServiceAnnotations[] = {
    {kIpvsSchedulerAnnotation, &text<&set_beginning<&Service::ipvs_scheduler, kMaxIpvsScheduler>>},
    {kIpvsWeightsAnnotation, &text<&set_beginning<&Service::ipvs_weights, kMaxIpvsWeights>>},
};
constexpr auto kServiceMetadata = metadata_of<Service>(
    Field{"labels", &inside<kServiceLabels>}, Field{"annotations", &inside<kServiceAnnotations>});
constexpr Field kService[] = {
    {"kind", &text<&check_kind<Service>>},
    {"metadata", &inside<kServiceMetadata>},
    {"spec", &inside<kServiceSpec>},
    {"status", &inside<kServiceStatus>},
};

// --- discovery.k8s.io/v1 EndpointSlice

Verdict set_trigger_time(EndpointSlice& slice, std::string_view text) {
  slice.trigger_time_ns = unix_nanoseconds(parse_rfc3339(text));
  return Verdict::Fine;
}

// Whether it had to be an address is known at the end of the slice: addressType may come last.
Verdict set_address(SliceEndpoint& endpoint, std::string_view text) {
  endpoint.address = net::parse_ip(text);
  return endpoint.address ? Verdict::Fine : Verdict::NotAnAddress;
}
Verdict ignore_address(SliceEndpoint&, std::string_view) { return Verdict::Fine; }

Slot addresses(void* target) {
  return Slot{ListSlot{
      .target = target,
      .clear = [](void* endpoint) { static_cast<SliceEndpoint*>(endpoint)->address.reset(); },
      .append =
          [](void* endpoint, std::size_t index) {
            return index == 0 ? text<&set_address>(endpoint) : text<&ignore_address>(endpoint);
          }}};
}

constexpr Field kName[] = {{"name", &itself}};
constexpr Field kConditions[] = {
    {"ready", &value<&SliceEndpoint::ready>},
    {"serving", &value<&SliceEndpoint::serving>},
    {"terminating", &value<&SliceEndpoint::terminating>},
};
constexpr Field kHints[] = {
    {"forZones", &list<&SliceEndpoint::zone_hints, kName>},
    {"forNodes", &list<&SliceEndpoint::node_hints, kName>},
};
constexpr Field kEndpoint[] = {
    {"addresses", &addresses},
    {"conditions", &inside<kConditions>},
    {"nodeName", &value<&SliceEndpoint::node_name>},
    {"zone", &value<&SliceEndpoint::zone>},
    {"hints", &inside<kHints>},
};
constexpr Field kSlicePort[] = {
    {"name", &value<&SlicePort::name>},
    {"protocol", &value<&SlicePort::protocol>},
    {"port", &value<&SlicePort::port>},
};
constexpr Field kSliceLabels[] = {
    {kServiceNameLabel, &value<&EndpointSlice::service_name>},
    {kHeadlessLabel, &text<&set_present<EndpointSlice, &EndpointSlice::has_headless_label>>},
};
constexpr Field kSliceAnnotations[] = {
    {kTriggerTimeAnnotation, &text<&set_trigger_time>},
};
constexpr auto kSliceMetadata = metadata_of<EndpointSlice>(
    Field{"labels", &inside<kSliceLabels>}, Field{"annotations", &inside<kSliceAnnotations>});
constexpr Field kEndpointSlice[] = {
    {"kind", &text<&check_kind<EndpointSlice>>},
    {"metadata", &inside<kSliceMetadata>},
    {"addressType", &value<&EndpointSlice::address_type>},
    {"endpoints", &list<&EndpointSlice::endpoints, kEndpoint>},
    {"ports", &list<&EndpointSlice::ports, kSlicePort>},
};

// --- core/v1 Node

constexpr Field kTaint[] = {{"key", &itself}};
constexpr Field kNodeSpec[] = {
    {"podCIDRs", &value<&Node::pod_cidrs>},
    {"taints", &list<&Node::taint_keys, kTaint>},
};
constexpr Field kNodeAddress[] = {
    {"type", &value<&NodeAddress::type>},
    {"address", &value<&NodeAddress::address>},
};
constexpr Field kNodeStatus[] = {
    {"addresses", &list<&Node::addresses, kNodeAddress>},
};
constexpr Field kNodeLabels[] = {{kZoneLabel, &value<&Node::zone>}};
constexpr auto kNodeMetadata = metadata_of<Node>(
    Field{"deletionTimestamp", &text<&set_present<Node, &Node::deleting>>},
    Field{"labels", &inside<kNodeLabels>});
constexpr Field kNode[] = {
    {"kind", &text<&check_kind<Node>>},
    {"metadata", &inside<kNodeMetadata>},
    {"spec", &inside<kNodeSpec>},
    {"status", &inside<kNodeStatus>},
};

// --- networking.k8s.io/v1 ServiceCIDR

constexpr Field kServiceCidrSpec[] = {{"cidrs", &value<&ServiceCidr::cidrs>}};
constexpr auto kServiceCidrMetadata = metadata_of<ServiceCidr>();
constexpr Field kServiceCidr[] = {
    {"kind", &text<&check_kind<ServiceCidr>>},
    {"metadata", &inside<kServiceCidrMetadata>},
    {"spec", &inside<kServiceCidrSpec>},
};

// --- Bookmarks and metav1.Status

Verdict set_initial_events_end(Bookmark& bookmark, std::string_view text) {
  bookmark.initial_events_end = text == "true";
  return Verdict::Fine;
}

constexpr Field kBookmarkAnnotations[] = {
    {kInitialEventsEndAnnotation, &text<&set_initial_events_end>},
};
constexpr auto kBookmarkMetadata =
    metadata_of<Bookmark>(Field{"annotations", &inside<kBookmarkAnnotations>});
constexpr Field kBookmark[] = {{"metadata", &inside<kBookmarkMetadata>}};

constexpr Field kCause[] = {{"reason", &itself}};
constexpr Field kStatusDetails[] = {
    {"causes", &list<&ApiStatus::cause_reasons, kCause>},
    {"retryAfterSeconds", &value<&ApiStatus::retry_after_seconds>},
};
Slot status_details(void* target) {
  return inside<kStatusDetails>(&static_cast<StatusBody*>(target)->status);
}
constexpr Field kStatus[] = {
    {"kind", &value<&StatusBody::kind>},
    {"message", &value<&StatusBody::status, &ApiStatus::message>},
    {"reason", &value<&StatusBody::status, &ApiStatus::reason>},
    {"details", &status_details},
    {"code", &value<&StatusBody::status, &ApiStatus::code>},
};

}  // namespace

template <>
Shape shape_for<Service>() {
  return shape_of(kService);
}
template <>
Shape shape_for<EndpointSlice>() {
  return shape_of(kEndpointSlice);
}
template <>
Shape shape_for<Node>() {
  return shape_of(kNode);
}
template <>
Shape shape_for<ServiceCidr>() {
  return shape_of(kServiceCidr);
}
template <>
Shape shape_for<Bookmark>() {
  return shape_of(kBookmark);
}
template <>
Shape shape_for<StatusBody>() {
  return shape_of(kStatus);
}

}  // namespace shunt::kube::json
