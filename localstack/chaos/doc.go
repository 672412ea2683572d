// Package chaos proves on whole processes what the simulator proves on one: the
// function binaries that deploy are killed, stopped, timed out and cut off from
// a real DynamoDB Local, alone at known points and at random under load, and
// afterwards every payment is held against every answer that a client got.
//
// `make chaos` runs it; its tests have the build tag chaos. The audit itself,
// [Books.Audit], is a plain function with tests of its own.
package chaos
