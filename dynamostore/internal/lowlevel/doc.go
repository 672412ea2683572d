// Package lowlevel writes the requests that a store sends, and reads their answers:
// the JSON of DynamoDB's API, version 2012-08-10 (AWS, "DynamoDB low-level API").
//
// It is strict where the SDK is generous. What it does not know, it reports, and
// the SDK's own client serves the call: a request with a member that no store
// sets, an answer with a member that no store asked for, null, a name that stands
// twice, text that is not UTF-8.
package lowlevel
