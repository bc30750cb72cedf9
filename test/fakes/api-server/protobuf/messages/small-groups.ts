/** The kinds that the fake has of k8s.io/api/networking/v1, coordination/v1 and events/v1. */
export const SMALL_GROUPS = [
  `
syntax = "proto2";
package networking;

message ServiceCIDR {
  required meta.ObjectMeta metadata = 1;
  required ServiceCIDRSpec spec = 2;
  required ServiceCIDRStatus status = 3;
}

message ServiceCIDRList {
  required meta.ListMeta metadata = 1;
  repeated ServiceCIDR items = 2;
}

message ServiceCIDRSpec {
  repeated string cidrs = 1;
}

message ServiceCIDRStatus {
  repeated meta.Condition conditions = 1;
}
`,
  `
syntax = "proto2";
package coordination;

message Lease {
  required meta.ObjectMeta metadata = 1;
  required LeaseSpec spec = 2;
}

message LeaseList {
  required meta.ListMeta metadata = 1;
  repeated Lease items = 2;
}

message LeaseSpec {
  optional string holderIdentity = 1;
  optional int32 leaseDurationSeconds = 2;
  optional meta.MicroTime acquireTime = 3;
  optional meta.MicroTime renewTime = 4;
  optional int32 leaseTransitions = 5;
  optional string strategy = 6;
  optional string preferredHolder = 7;
}
`,
  `
syntax = "proto2";
package events;

message Event {
  required meta.ObjectMeta metadata = 1;
  required meta.MicroTime eventTime = 2;
  optional EventSeries series = 3;
  required string reportingController = 4;
  required string reportingInstance = 5;
  required string action = 6;
  required string reason = 7;
  required core.ObjectReference regarding = 8;
  optional core.ObjectReference related = 9;
  required string note = 10;
  required string type = 11;
  required core.EventSource deprecatedSource = 12;
  required meta.Time deprecatedFirstTimestamp = 13;
  required meta.Time deprecatedLastTimestamp = 14;
  required int32 deprecatedCount = 15;
}

message EventList {
  required meta.ListMeta metadata = 1;
  repeated Event items = 2;
}

message EventSeries {
  required int32 count = 1;
  required meta.MicroTime lastObservedTime = 2;
}
`,
];
