/** The Node of k8s.io/api/core/v1; what became of the configuration by ConfigMap is left out. */
export const NODE = `
syntax = "proto2";
package core;

message Node {
  required meta.ObjectMeta metadata = 1;
  required NodeSpec spec = 2;
  required NodeStatus status = 3;
}

message NodeList {
  required meta.ListMeta metadata = 1;
  repeated Node items = 2;
}

message NodeSpec {
  required string podCIDR = 1;
  required string externalID = 2;
  required string providerID = 3;
  required bool unschedulable = 4;
  repeated Taint taints = 5;
  repeated string podCIDRs = 7;
}

message Taint {
  required string key = 1;
  required string value = 2;
  required string effect = 3;
  optional meta.Time timeAdded = 4;
}

message NodeStatus {
  map<string, meta.Quantity> capacity = 1;
  map<string, meta.Quantity> allocatable = 2;
  required string phase = 3;
  repeated NodeCondition conditions = 4;
  repeated NodeAddress addresses = 5;
  required NodeDaemonEndpoints daemonEndpoints = 6;
  required NodeSystemInfo nodeInfo = 7;
  repeated ContainerImage images = 8;
  repeated string volumesInUse = 9;
  repeated AttachedVolume volumesAttached = 10;
  repeated NodeRuntimeHandler runtimeHandlers = 12;
  optional NodeFeatures features = 13;
  repeated string declaredFeatures = 14;
}

message NodeCondition {
  required string type = 1;
  required string status = 2;
  required meta.Time lastHeartbeatTime = 3;
  required meta.Time lastTransitionTime = 4;
  required string reason = 5;
  required string message = 6;
}

message NodeAddress {
  required string type = 1;
  required string address = 2;
}

message NodeDaemonEndpoints {
  required DaemonEndpoint kubeletEndpoint = 1;
}

message DaemonEndpoint {
  required int32 Port = 1;
}

message NodeSystemInfo {
  required string machineID = 1;
  required string systemUUID = 2;
  required string bootID = 3;
  required string kernelVersion = 4;
  required string osImage = 5;
  required string containerRuntimeVersion = 6;
  required string kubeletVersion = 7;
  required string kubeProxyVersion = 8;
  required string operatingSystem = 9;
  required string architecture = 10;
  optional NodeSwapStatus swap = 11;
}

message NodeSwapStatus {
  optional int64 capacity = 1;
}

message ContainerImage {
  repeated string names = 1;
  required int64 sizeBytes = 2;
}

message AttachedVolume {
  required string name = 1;
  required string devicePath = 2;
}

message NodeRuntimeHandler {
  required string name = 1;
  optional NodeRuntimeHandlerFeatures features = 2;
}

message NodeRuntimeHandlerFeatures {
  optional bool recursiveReadOnlyMounts = 1;
  optional bool userNamespaces = 2;
}

message NodeFeatures {
  optional bool supplementalGroupsPolicy = 1;
}
`;
