// Package lowlevel encodes requests to DynamoDB and decodes the responses. It implements
// the part of the JSON of DynamoDB's API, version 2012-08-10 (AWS, "DynamoDB low-level
// API"), that package dynamostore uses.
//
// Its functions are faster and stricter than the SDK. They report failure for JSON that
// they don't expect: a member that dynamostore did not ask for, null, a duplicate name, or
// text that is not UTF-8. The caller then decodes the response by [Plain], which is slower
// and accepts more, or leaves the call to the SDK's client.
package lowlevel
