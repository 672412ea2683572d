// Package powertools lets a guarded Go function take over from a function that used the
// idempotency utility of Powertools for AWS Lambda. A client may retry a request that the old
// function carried out. The guard has no record of that request, so it would run the handler
// again. With this package, the guarded function first reads the record that Powertools stored:
//
//	records := powertools.New(client, "idempotency", powertools.Python, "payments.app.handler")
//	lambda.Start(guard.APIGatewayV2(powertools.Handler(records, selectOrder, createPayment)))
//
// [Handler] runs inside the guard, which has acquired its own record by then. So at most one of the
// calls that share a record of the guard reads the Powertools record and may run the handler. The
// guard stores the answer that Powertools had, and later retries get it without another read.
//
// Calls with different records of the guard, such as those of two callers, may select the same
// data. They then find the same Powertools record, as they did in the old function.
//
// The package reads Powertools records and never writes one. Its only permission is
// dynamodb:GetItem on the table of the Powertools records, which may be the guard's own table.
//
// # Which record
//
// Powertools stores a record under an id such as "payments.app.handler#5f3c…": a prefix, and a hash
// of the data that it selects from the event. Each language writes the data differently before it
// hashes the data. [Language.ID] reproduces the id for all four languages, and refuses data if it
// can't. If the id were wrong, no record would be found, and the handler would run again.
//
// docs/powertools.md has the steps of a migration, its limits, and the equivalent of each
// Powertools option.
package powertools
