/** k8s.io/api/core/v1; of a Pod nothing but who it is, for nobody here asks for more. */
export const CORE = `
syntax = "proto2";
package core;

message ObjectReference {
  required string kind = 1;
  required string namespace = 2;
  required string name = 3;
  required string uid = 4;
  required string apiVersion = 5;
  required string resourceVersion = 6;
  required string fieldPath = 7;
}

message EventSource {
  required string component = 1;
  required string host = 2;
}

message Service {
  required meta.ObjectMeta metadata = 1;
  required ServiceSpec spec = 2;
  required ServiceStatus status = 3;
}

message ServiceList {
  required meta.ListMeta metadata = 1;
  repeated Service items = 2;
}

message ServiceSpec {
  repeated ServicePort ports = 1;
  map<string, string> selector = 2;
  required string clusterIP = 3;
  required string type = 4;
  repeated string externalIPs = 5;
  required string sessionAffinity = 7;
  required string loadBalancerIP = 8;
  repeated string loadBalancerSourceRanges = 9;
  required string externalName = 10;
  required string externalTrafficPolicy = 11;
  required int32 healthCheckNodePort = 12;
  required bool publishNotReadyAddresses = 13;
  optional SessionAffinityConfig sessionAffinityConfig = 14;
  optional string ipFamilyPolicy = 17;
  repeated string clusterIPs = 18;
  repeated string ipFamilies = 19;
  optional bool allocateLoadBalancerNodePorts = 20;
  optional string loadBalancerClass = 21;
  optional string internalTrafficPolicy = 22;
  optional string trafficDistribution = 23;
}

message ServicePort {
  required string name = 1;
  required string protocol = 2;
  required int32 port = 3;
  required meta.IntOrString targetPort = 4;
  required int32 nodePort = 5;
  optional string appProtocol = 6;
}

message SessionAffinityConfig {
  optional ClientIPConfig clientIP = 1;
}

message ClientIPConfig {
  optional int32 timeoutSeconds = 1;
}

message ServiceStatus {
  required LoadBalancerStatus loadBalancer = 1;
  repeated meta.Condition conditions = 2;
}

message LoadBalancerStatus {
  repeated LoadBalancerIngress ingress = 1;
}

message LoadBalancerIngress {
  required string ip = 1;
  required string hostname = 2;
  optional string ipMode = 3;
  repeated PortStatus ports = 4;
}

message PortStatus {
  required int32 port = 1;
  required string protocol = 2;
  optional string error = 3;
}

message Pod {
  required meta.ObjectMeta metadata = 1;
}

message PodList {
  required meta.ListMeta metadata = 1;
  repeated Pod items = 2;
}

message Endpoints {
  required meta.ObjectMeta metadata = 1;
  repeated EndpointSubset subsets = 2;
}

message EndpointsList {
  required meta.ListMeta metadata = 1;
  repeated Endpoints items = 2;
}

message EndpointSubset {
  repeated EndpointAddress addresses = 1;
  repeated EndpointAddress notReadyAddresses = 2;
  repeated EndpointPort ports = 3;
}

message EndpointAddress {
  required string ip = 1;
  optional ObjectReference targetRef = 2;
  required string hostname = 3;
  optional string nodeName = 4;
}

message EndpointPort {
  required string name = 1;
  required int32 port = 2;
  required string protocol = 3;
  optional string appProtocol = 4;
}
`;
