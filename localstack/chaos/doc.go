// Package chaos tests the deployed function binaries as real processes, against a real DynamoDB
// Local. The tests kill processes, stop them, let them exceed their timeout, and cut them off
// from the database: one at a time at known points, and at random under load. Afterwards an
// audit compares every payment and transfer with every answer that a client got.
//
// `make chaos` runs the tests, which have the build tag chaos. The audit itself, [Books.Audit],
// is a plain function with tests of its own.
package chaos
