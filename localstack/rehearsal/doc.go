// Package rehearsal breaks the functions' calls to DynamoDB on demand, so that a person can
// rehearse an incident: it throttles the table or cuts it off, loses a reply at a chosen
// point of the protocol, and kills a process in the middle of an attempt.
//
// [Faults] decides what becomes of each call. A proxy of package proxy between the functions
// and DynamoDB asks it.
package rehearsal
