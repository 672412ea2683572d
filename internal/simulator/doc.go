// Package simulator runs the real guard and the real dynamostore, the SDK's
// retries included, in a world where everything that can go wrong does: requests
// and replies get lost, come late or twice, DynamoDB throttles, fails after the
// write and reports conflicts, clocks differ, processes die at any point, stall
// past their lease and come back, TTL deletes as it pleases.
//
// A world lives in one testing/synctest bubble: its time is virtual, so an hour
// costs nothing. Whatever chance decides comes from one seed, and one request at
// a time reaches package wire's DynamoDB, in an order that the seed decides. The
// same seed gives the same run, to the nanosecond.
//
// The world keeps a book of everything: which attempt ran when, which effect it
// had, what each write did to a record, what every client was told. The checks
// in checks.go hold the book against the contract's rules, and linearizable.go hands
// it to porcupine with a model of the contract. A run that breaks a rule prints
// a timeline of who did what.
package simulator
