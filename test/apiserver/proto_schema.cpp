#include "test/apiserver/proto_schema.h"

namespace shunt::test_api::proto {
namespace {

using enum Type;
using enum Rule;

// Short rows for what most fields are.
constexpr Field text(std::string_view name, std::uint32_t tag, Rule rule = Always) {
  return {name, tag, String, rule, nullptr};
}
constexpr Field number(std::string_view name, std::uint32_t tag, Rule rule = Always) {
  return {name, tag, Int, rule, nullptr};
}
constexpr Field flag(std::string_view name, std::uint32_t tag, Rule rule = Always) {
  return {name, tag, Bool, rule, nullptr};
}
constexpr Field time(std::string_view name, std::uint32_t tag, Rule rule = Always) {
  return {name, tag, Time, rule, nullptr};
}
constexpr Field part(
    std::string_view name, std::uint32_t tag, const Message& message, Rule rule = Always) {
  return {name, tag, Nested, rule, &message};
}

// meta/v1

constexpr Field kOwnerReferenceFields[] = {
    text("kind", 1),
    text("name", 3),
    text("uid", 4),
    text("apiVersion", 5),
    flag("controller", 6, Present),
    flag("blockOwnerDeletion", 7, Present)};
constexpr Message kOwnerReference{kOwnerReferenceFields};

constexpr Field kManagedFieldsFields[] = {
    text("manager", 1),
    text("operation", 2),
    text("apiVersion", 3),
    time("time", 4, Present),
    text("fieldsType", 6),
    {"fieldsV1", 7, RawJson, Present, nullptr},
    text("subresource", 8)};
constexpr Message kManagedFields{kManagedFieldsFields};

constexpr Field kObjectMetaFields[] = {
    text("name", 1),
    text("generateName", 2),
    text("namespace", 3),
    text("selfLink", 4),
    text("uid", 5),
    text("resourceVersion", 6),
    number("generation", 7),
    time("creationTimestamp", 8),
    time("deletionTimestamp", 9, Present),
    number("deletionGracePeriodSeconds", 10, Present),
    {"labels", 11, StringMap, Repeated, nullptr},
    {"annotations", 12, StringMap, Repeated, nullptr},
    part("ownerReferences", 13, kOwnerReference, Repeated),
    text("finalizers", 14, Repeated),
    part("managedFields", 17, kManagedFields, Repeated)};
constexpr Message kObjectMeta{kObjectMetaFields};

constexpr Field kListMetaFields[] = {
    text("selfLink", 1),
    text("resourceVersion", 2),
    text("continue", 3),
    number("remainingItemCount", 4, Present)};

constexpr Field kConditionFields[] = {
    text("type", 1),
    text("status", 2),
    number("observedGeneration", 3),
    time("lastTransitionTime", 4),
    text("reason", 5),
    text("message", 6)};
constexpr Message kCondition{kConditionFields};

constexpr Field kStatusCauseFields[] = {text("reason", 1), text("message", 2), text("field", 3)};
constexpr Message kStatusCause{kStatusCauseFields};

constexpr Field kStatusDetailsFields[] = {
    text("name", 1),
    text("group", 2),
    text("kind", 3),
    part("causes", 4, kStatusCause, Repeated),
    number("retryAfterSeconds", 5),
    text("uid", 6)};
constexpr Message kStatusDetails{kStatusDetailsFields};

constexpr Message kStatusListMeta{kListMetaFields};
constexpr Field kStatusFields[] = {
    part("metadata", 1, kStatusListMeta),
    text("status", 2),
    text("message", 3),
    text("reason", 4),
    part("details", 5, kStatusDetails, Present),
    number("code", 6)};

// core/v1: Service

constexpr Field kServicePortFields[] = {
    text("name", 1),
    text("protocol", 2),
    number("port", 3),
    {"targetPort", 4, IntOrString, Always, nullptr},
    number("nodePort", 5),
    text("appProtocol", 6, Present)};
constexpr Message kServicePort{kServicePortFields};

constexpr Field kClientIpFields[] = {number("timeoutSeconds", 1, Present)};
constexpr Message kClientIp{kClientIpFields};
constexpr Field kAffinityFields[] = {part("clientIP", 1, kClientIp, Present)};
constexpr Message kAffinity{kAffinityFields};

constexpr Field kServiceSpecFields[] = {
    part("ports", 1, kServicePort, Repeated),
    {"selector", 2, StringMap, Repeated, nullptr},
    text("clusterIP", 3),
    text("type", 4),
    text("externalIPs", 5, Repeated),
    text("sessionAffinity", 7),
    text("loadBalancerIP", 8),
    text("loadBalancerSourceRanges", 9, Repeated),
    text("externalName", 10),
    text("externalTrafficPolicy", 11),
    number("healthCheckNodePort", 12),
    flag("publishNotReadyAddresses", 13),
    part("sessionAffinityConfig", 14, kAffinity, Present),
    text("ipFamilyPolicy", 17, Present),
    text("clusterIPs", 18, Repeated),
    text("ipFamilies", 19, Repeated),
    flag("allocateLoadBalancerNodePorts", 20, Present),
    text("loadBalancerClass", 21, Present),
    text("internalTrafficPolicy", 22, Present),
    text("trafficDistribution", 23, Present)};
constexpr Message kServiceSpec{kServiceSpecFields};

constexpr Field kPortStatusFields[] = {
    number("port", 1), text("protocol", 2), text("error", 3, Present)};
constexpr Message kPortStatus{kPortStatusFields};
constexpr Field kIngressFields[] = {
    text("ip", 1),
    text("hostname", 2),
    text("ipMode", 3, Present),
    part("ports", 4, kPortStatus, Repeated)};
constexpr Message kIngress{kIngressFields};
constexpr Field kLoadBalancerFields[] = {part("ingress", 1, kIngress, Repeated)};
constexpr Message kLoadBalancer{kLoadBalancerFields};
constexpr Field kServiceStatusFields[] = {
    part("loadBalancer", 1, kLoadBalancer), part("conditions", 2, kCondition, Repeated)};
constexpr Message kServiceStatus{kServiceStatusFields};

constexpr Field kServiceFields[] = {
    part("metadata", 1, kObjectMeta),
    part("spec", 2, kServiceSpec),
    part("status", 3, kServiceStatus)};

// discovery/v1: EndpointSlice

constexpr Field kEndpointConditionsFields[] = {
    flag("ready", 1, Present), flag("serving", 2, Present), flag("terminating", 3, Present)};
constexpr Message kEndpointConditions{kEndpointConditionsFields};

constexpr Field kObjectReferenceFields[] = {
    text("kind", 1),
    text("namespace", 2),
    text("name", 3),
    text("uid", 4),
    text("apiVersion", 5),
    text("resourceVersion", 6),
    text("fieldPath", 7)};
constexpr Message kObjectReference{kObjectReferenceFields};

constexpr Field kHintFields[] = {text("name", 1)};
constexpr Message kHint{kHintFields};
constexpr Field kHintsFields[] = {
    part("forZones", 1, kHint, Repeated), part("forNodes", 2, kHint, Repeated)};
constexpr Message kHints{kHintsFields};

constexpr Field kEndpointFields[] = {
    text("addresses", 1, Repeated),
    part("conditions", 2, kEndpointConditions),
    text("hostname", 3, Present),
    part("targetRef", 4, kObjectReference, Present),
    {"deprecatedTopology", 5, StringMap, Repeated, nullptr},
    text("nodeName", 6, Present),
    text("zone", 7, Present),
    part("hints", 8, kHints, Present)};
constexpr Message kEndpoint{kEndpointFields};

constexpr Field kEndpointPortFields[] = {
    text("name", 1, Present),
    text("protocol", 2, Present),
    number("port", 3, Present),
    text("appProtocol", 4, Present)};
constexpr Message kEndpointPort{kEndpointPortFields};

constexpr Field kEndpointSliceFields[] = {
    part("metadata", 1, kObjectMeta),
    part("endpoints", 2, kEndpoint, Repeated),
    part("ports", 3, kEndpointPort, Repeated),
    text("addressType", 4)};

// core/v1: Node

constexpr Field kTaintFields[] = {
    text("key", 1), text("value", 2), text("effect", 3), time("timeAdded", 4, Present)};
constexpr Message kTaint{kTaintFields};

constexpr Field kNodeSpecFields[] = {
    text("podCIDR", 1),
    text("externalID", 2),
    text("providerID", 3),
    flag("unschedulable", 4),
    part("taints", 5, kTaint, Repeated),
    text("podCIDRs", 7, Repeated)};
constexpr Message kNodeSpec{kNodeSpecFields};

constexpr Field kNodeConditionFields[] = {
    text("type", 1),
    text("status", 2),
    time("lastHeartbeatTime", 3),
    time("lastTransitionTime", 4),
    text("reason", 5),
    text("message", 6)};
constexpr Message kNodeCondition{kNodeConditionFields};

constexpr Field kNodeAddressFields[] = {text("type", 1), text("address", 2)};
constexpr Message kNodeAddress{kNodeAddressFields};

constexpr Field kDaemonEndpointFields[] = {number("Port", 1)};
constexpr Message kDaemonEndpoint{kDaemonEndpointFields};
constexpr Field kDaemonEndpointsFields[] = {part("kubeletEndpoint", 1, kDaemonEndpoint)};
constexpr Message kDaemonEndpoints{kDaemonEndpointsFields};

constexpr Field kSwapFields[] = {number("capacity", 1, Present)};
constexpr Message kSwap{kSwapFields};
constexpr Field kNodeInfoFields[] = {
    text("machineID", 1),
    text("systemUUID", 2),
    text("bootID", 3),
    text("kernelVersion", 4),
    text("osImage", 5),
    text("containerRuntimeVersion", 6),
    text("kubeletVersion", 7),
    text("kubeProxyVersion", 8),
    text("operatingSystem", 9),
    text("architecture", 10),
    part("swap", 11, kSwap, Present)};
constexpr Message kNodeInfo{kNodeInfoFields};

constexpr Field kImageFields[] = {text("names", 1, Repeated), number("sizeBytes", 2)};
constexpr Message kImage{kImageFields};
constexpr Field kAttachedVolumeFields[] = {text("name", 1), text("devicePath", 2)};
constexpr Message kAttachedVolume{kAttachedVolumeFields};
constexpr Field kHandlerFeaturesFields[] = {
    flag("recursiveReadOnlyMounts", 1, Present), flag("userNamespaces", 2, Present)};
constexpr Message kHandlerFeatures{kHandlerFeaturesFields};
constexpr Field kRuntimeHandlerFields[] = {
    text("name", 1), part("features", 2, kHandlerFeatures, Present)};
constexpr Message kRuntimeHandler{kRuntimeHandlerFields};
constexpr Field kNodeFeaturesFields[] = {flag("supplementalGroupsPolicy", 1, Present)};
constexpr Message kNodeFeatures{kNodeFeaturesFields};

constexpr Field kNodeStatusFields[] = {
    {"capacity", 1, QuantityMap, Repeated, nullptr},
    {"allocatable", 2, QuantityMap, Repeated, nullptr},
    text("phase", 3),
    part("conditions", 4, kNodeCondition, Repeated),
    part("addresses", 5, kNodeAddress, Repeated),
    part("daemonEndpoints", 6, kDaemonEndpoints),
    part("nodeInfo", 7, kNodeInfo),
    part("images", 8, kImage, Repeated),
    text("volumesInUse", 9, Repeated),
    part("volumesAttached", 10, kAttachedVolume, Repeated),
    part("runtimeHandlers", 12, kRuntimeHandler, Repeated),
    part("features", 13, kNodeFeatures, Present),
    text("declaredFeatures", 14, Repeated)};
constexpr Message kNodeStatus{kNodeStatusFields};

constexpr Field kNodeFields[] = {
    part("metadata", 1, kObjectMeta), part("spec", 2, kNodeSpec), part("status", 3, kNodeStatus)};

// networking/v1: ServiceCIDR

constexpr Field kCidrSpecFields[] = {text("cidrs", 1, Repeated)};
constexpr Message kCidrSpec{kCidrSpecFields};
constexpr Field kCidrStatusFields[] = {part("conditions", 1, kCondition, Repeated)};
constexpr Message kCidrStatus{kCidrStatusFields};
constexpr Field kServiceCidrFields[] = {
    part("metadata", 1, kObjectMeta), part("spec", 2, kCidrSpec), part("status", 3, kCidrStatus)};

static_assert(std::size(kServiceSpecFields) <= kMaxFields);

}  // namespace

const Message kService{kServiceFields};
const Message kEndpointSlice{kEndpointSliceFields};
const Message kNode{kNodeFields};
const Message kServiceCidr{kServiceCidrFields};
const Message kStatus{kStatusFields};
const Message kListMeta{kListMetaFields};

}  // namespace shunt::test_api::proto
