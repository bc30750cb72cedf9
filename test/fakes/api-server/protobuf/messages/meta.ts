/**
 * What all kinds share, and what an API server says itself: k8s.io/apimachinery's runtime, meta/v1, util/intstr and
 * api/resource in one package.
 *
 * In all of these definitions `required` is a field of Go that is no pointer: upstream writes it always, empty or zero if
 * there is nothing to say. What is `optional` is left out then; of a time both fields, for the zero time is an empty message.
 */
export const META = `
syntax = "proto2";
package meta;

message TypeMeta {
  required string apiVersion = 1;
  required string kind = 2;
}

message Unknown {
  required TypeMeta typeMeta = 1;
  optional bytes raw = 2;
  required string contentEncoding = 3;
  required string contentType = 4;
}

message RawExtension {
  optional bytes raw = 1;
}

message WatchEvent {
  required string type = 1;
  required RawExtension object = 2;
}

message Time {
  optional int64 seconds = 1;
  optional int32 nanos = 2;
}

message MicroTime {
  optional int64 seconds = 1;
  optional int32 nanos = 2;
}

message Quantity {
  required string string = 1;
}

message IntOrString {
  required int64 type = 1;
  required int32 intVal = 2;
  required string strVal = 3;
}

message ObjectMeta {
  required string name = 1;
  required string generateName = 2;
  required string namespace = 3;
  required string selfLink = 4;
  required string uid = 5;
  required string resourceVersion = 6;
  required int64 generation = 7;
  required Time creationTimestamp = 8;
  optional Time deletionTimestamp = 9;
  optional int64 deletionGracePeriodSeconds = 10;
  map<string, string> labels = 11;
  map<string, string> annotations = 12;
  repeated OwnerReference ownerReferences = 13;
  repeated string finalizers = 14;
  repeated ManagedFieldsEntry managedFields = 17;
}

message OwnerReference {
  required string kind = 1;
  required string name = 3;
  required string uid = 4;
  required string apiVersion = 5;
  optional bool controller = 6;
  optional bool blockOwnerDeletion = 7;
}

message ManagedFieldsEntry {
  required string manager = 1;
  required string operation = 2;
  required string apiVersion = 3;
  optional Time time = 4;
  required string fieldsType = 6;
  optional FieldsV1 fieldsV1 = 7;
  required string subresource = 8;
}

message FieldsV1 {
  optional bytes Raw = 1;
}

message ListMeta {
  required string selfLink = 1;
  required string resourceVersion = 2;
  required string continue = 3;
  optional int64 remainingItemCount = 4;
}

message Condition {
  required string type = 1;
  required string status = 2;
  required int64 observedGeneration = 3;
  required Time lastTransitionTime = 4;
  required string reason = 5;
  required string message = 6;
}

message Status {
  required ListMeta metadata = 1;
  required string status = 2;
  required string message = 3;
  required string reason = 4;
  optional StatusDetails details = 5;
  required int32 code = 6;
}

message StatusDetails {
  required string name = 1;
  required string group = 2;
  required string kind = 3;
  repeated StatusCause causes = 4;
  required int32 retryAfterSeconds = 5;
  required string uid = 6;
}

message StatusCause {
  required string reason = 1;
  required string message = 2;
  required string field = 3;
}
`;
