package powertools

import (
	"context"
	"crypto/md5" //nolint:gosec // Powertools hashes with MD5 by default
	"fmt"
	"hash"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Client is the part of a *dynamodb.Client that reads records.
type Client interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
}

// Records finds the records that Powertools has stored for one function in one table. Create it
// with [New]. It is safe for concurrent use.
type Records struct {
	client   Client
	table    string
	language Language
	prefix   string
	opts     Options
}

// Options configure [New]. New sets every field to its default before it calls optFns.
type Options struct {
	// Until is the end of the migration. From then on, no record is read, and [Find] finds nothing.
	// Default: none; every call then reads a record.
	//
	// Set Until to the time at which the old function, which used Powertools, was stopped, plus the
	// timeout of that function, plus the expiry of its records (expires_after_seconds, 1 hour by
	// default). The expiry counts from the end of an attempt.
	Until time.Time

	// Policy decides what happens if an attempt of the old function died and left its record in
	// progress. With [lambdaidem.Rerun], the default, the handler runs, as it would with
	// Powertools. With [lambdaidem.Hold], [Find] returns an Uncertain error with the code
	// ErrAttemptAbandoned. A guard with policy Hold then waits for an operator; see
	// docs/powertools.md.
	//
	// Set Hold only if the guard has policy Hold too. Under a guard with policy Rerun, retries
	// would get the error again and again, until the Powertools record expires.
	Policy lambdaidem.Policy

	// Hash is the hash function that Powertools was configured with (hash_function). Default:
	// md5.New, as in Powertools.
	Hash func() hash.Hash

	// SortKeyAttribute is the name of the table's sort key, if Powertools was configured with one
	// (sort_key_attr). The sort key then has the id of the record, and the partition key has the
	// value PartitionKey. Default: none; the partition key then has the id.
	SortKeyAttribute string

	// PartitionKey is the value of the partition key of all records in a table with a sort key
	// (static_pk_value). The default of Powertools is "idempotency#", followed by the name of the
	// Lambda function that used Powertools. New panics if only one of SortKeyAttribute and
	// PartitionKey is set.
	PartitionKey string

	// Each of the fields below names one attribute of a record. Set it to the value that the old
	// function gave the Powertools option in parentheses. The defaults are those of Powertools.
	IDAttribute                   string // the partition key (key_attr); default "id"
	StatusAttribute               string // the state of the record (status_attr); default "status"
	ExpirationAttribute           string // when the record expires, in epoch seconds (expiry_attr); default "expiration"
	InProgressExpirationAttribute string // when the attempt ends at the latest, in epoch milliseconds (in_progress_expiry_attr); default "in_progress_expiration"
	DataAttribute                 string // the answer (data_attr); default "data"
	ValidationAttribute           string // the hash of the validated payload (validation_key_attr); default "validation"

	// Clock returns the current time. Set it in tests only. Default: time.Now.
	Clock func() time.Time
}

// New returns a Records, which finds the records that Powertools has stored for one function in the
// given table. The table is a name or an ARN. New panics if an argument is empty, the language is
// unknown, or an option is invalid.
//
// The prefix is the part of every id before "#". The surest way to find it is to look at the ids in
// the table. If Powertools was configured with a key_prefix, the prefix is that value. Otherwise
// Powertools makes the prefix from the name of the Lambda function, here payments:
//
//   - Python: "payments.app.handler", with the module and the qualified name of the decorated
//     function.
//   - TypeScript: "payments".
//   - Java: "payments.handleRequest", with the method. With Idempotency.makeIdempotent, the name
//     that was passed to it takes the place of the method: by default, "payments.function".
//   - .NET: "payments.Handler", with the method.
func New(client Client, table string, language Language, prefix string, optFns ...func(*Options)) *Records {
	o := Options{
		Policy:                        lambdaidem.Rerun,
		Hash:                          md5.New,
		IDAttribute:                   "id",
		StatusAttribute:               "status",
		ExpirationAttribute:           "expiration",
		InProgressExpirationAttribute: "in_progress_expiration",
		DataAttribute:                 "data",
		ValidationAttribute:           "validation",
		Clock:                         time.Now,
	}
	for _, fn := range optFns {
		fn(&o)
	}
	if problem := problemOf(client, table, language, prefix, o); problem != "" {
		panic("powertools: New: " + problem)
	}
	return &Records{client, table, language, prefix, o}
}

// problemOf describes an invalid argument of New. It returns "" if all are valid.
func problemOf(client Client, table string, language Language, prefix string, o Options) string {
	switch {
	case client == nil:
		return "client is nil"
	case table == "":
		return "table is empty; it must be a table's name or its ARN"
	case language != Python && language != TypeScript && language != Java && language != DotNet:
		return fmt.Sprintf("language is %q; it must be Python, TypeScript, Java or DotNet", language)
	case prefix == "":
		return `prefix is empty; it must be the part of the ids before "#"`
	case o.Policy != lambdaidem.Rerun && o.Policy != lambdaidem.Hold:
		return fmt.Sprintf("Options.Policy is %q; it must be %q or %q", o.Policy, lambdaidem.Rerun, lambdaidem.Hold)
	case (o.SortKeyAttribute == "") != (o.PartitionKey == ""):
		return "set both Options.SortKeyAttribute and Options.PartitionKey, or neither: a table with a sort key has its records under one partition key"
	case o.Hash == nil || o.Clock == nil:
		return "Options.Hash or Options.Clock is nil"
	}
	for _, name := range []string{o.IDAttribute, o.StatusAttribute, o.ExpirationAttribute, o.InProgressExpirationAttribute, o.DataAttribute, o.ValidationAttribute} {
		if name == "" {
			return "the name of an attribute is empty; leave it at its default or set it"
		}
	}
	return ""
}

// ended reports whether the migration is over.
func (r *Records) ended() bool {
	return !r.opts.Until.IsZero() && !r.opts.Clock().Before(r.opts.Until)
}
