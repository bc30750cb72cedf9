/** k8s.io/api/discovery/v1. */
export const DISCOVERY = `
syntax = "proto2";
package discovery;

message EndpointSlice {
  required meta.ObjectMeta metadata = 1;
  repeated Endpoint endpoints = 2;
  repeated EndpointPort ports = 3;
  required string addressType = 4;
}

message EndpointSliceList {
  required meta.ListMeta metadata = 1;
  repeated EndpointSlice items = 2;
}

message Endpoint {
  repeated string addresses = 1;
  required EndpointConditions conditions = 2;
  optional string hostname = 3;
  optional core.ObjectReference targetRef = 4;
  map<string, string> deprecatedTopology = 5;
  optional string nodeName = 6;
  optional string zone = 7;
  optional EndpointHints hints = 8;
}

message EndpointConditions {
  optional bool ready = 1;
  optional bool serving = 2;
  optional bool terminating = 3;
}

message EndpointHints {
  repeated ForZone forZones = 1;
  repeated ForNode forNodes = 2;
}

message ForZone {
  required string name = 1;
}

message ForNode {
  required string name = 1;
}

message EndpointPort {
  optional string name = 1;
  optional string protocol = 2;
  optional int32 port = 3;
  optional string appProtocol = 4;
}
`;
