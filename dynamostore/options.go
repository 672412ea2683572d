package dynamostore

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"
)

// Options are what [New] and [CreateTable] can be told. The zero value of every
// field is its documented default.
type Options struct {
	// Attempts is how many times one call may go over the wire, the first
	// included: 1 to 20. Default 3.
	Attempts int

	// AttemptTimeout ends one attempt on the wire, so that a connection that
	// died while the function was frozen costs one attempt and not the whole
	// call. At least 1 ms. Default 2 s: DynamoDB answers for single items in
	// single-digit milliseconds; the rest is for the first TLS connection of a
	// small function, which has a fraction of a processor.
	AttemptTimeout time.Duration

	// BackoffBase and BackoffMax bound the wait before attempt n+1: a random
	// part of BackoffBase doubled n-1 times, at most BackoffMax ("full jitter",
	// AWS Architecture Blog, "Exponential Backoff And Jitter"). Defaults 25 ms
	// and 1 s; BackoffMax is at least BackoffBase.
	BackoffBase, BackoffMax time.Duration

	// Transport is what carries requests to DynamoDB. Default: what the environment
	// variable LAMBDAIDEM_TRANSPORT says ("direct" or "sdk"), so that an operator can
	// switch without a deployment of code; without it, [TransportAuto].
	Transport Transport

	// Random gives the jitter, at least 0 and below 1. It must be safe for
	// concurrent use. Default: math/rand/v2.Float64.
	Random func() float64

	// CompressFrom is from how many bytes on an answer is compressed, if that
	// saves at least one write unit for certain: 1 KB. Smaller answers can be read
	// in the console. Default 2 KB: below it JSON rarely saves a unit. At least 1;
	// math.MaxInt compresses nothing.
	CompressFrom int

	// MaxInline is how many bytes of an answer, as it is stored, the record itself
	// keeps; a larger one goes over items of its own. 1 byte to 384 KB. Default
	// 20 KB: a replay is a refused write, and consumes by the size of the record,
	// while items of their own cost about a unit more to write, and are read at a
	// twentieth of the price. At one replay for 20 first requests, and prices on
	// demand, the two cost the same at 22 KB. If replays are rarer, a larger
	// MaxInline costs less: 54 KB at one in 50.
	MaxInline int

	// MaxAnswer is how many bytes an answer may have before it is compressed, as
	// the guard writes it. A larger one is not kept: the record completes without
	// it, and retries get lambdaidem.ErrAnswerUnavailable (X4). 1 byte to 64 MB.
	// Default 9 MB: what Lambda can return, 6 MB, as base64 and with headers.
	MaxAnswer int

	// Encryption encrypts what records keep of answers (S1). Default: none.
	Encryption Encryption

	// LeaseIndex is the name of a global secondary index of the table in which
	// [Store.DeadLeases] finds the leases whose attempts died, without a scan (O2).
	// Default: none, and nothing of it is written or asked for. 3 to 255 of A-Z a-z
	// 0-9 _ . -
	//
	// Its partition key is the string attribute lease_shard, its sort key the number
	// attribute in_progress_expiration (Options.InProgressExpirationAttribute), its
	// projection KEYS_ONLY. A record is in it while it is in progress and in no other
	// state: a lock and a completion, or a release, write one index entry each, a
	// takeover two, a step none; docs/cost.md has the figures. [CreateTable] makes it
	// and [Store.CheckTable] looks at it.
	//
	// It can be added to a table while functions run, before or after they are told
	// of it. Versions with it and without can take turns on one record. What a store
	// without it locked is not in the index; what it took over stays there; and what
	// it then completed or released leaves an entry behind until the record expires,
	// which costs each look a read unit and is told to nobody. So give the option to
	// all that write the table, and to whoever settles records by hand.
	LeaseIndex string

	// LeaseShards is over how many partition keys of the index the records are
	// spread by their ids: 1 to 1000. Default 64.
	//
	// Each takes 1,000 write units a second and no more, since its entries are sorted
	// by time (Amazon DynamoDB, "Best practices for designing and using partition keys
	// effectively"), and where the index can't keep up, every lock on the table is
	// throttled ("Understanding Global Secondary Index write throttling and back
	// pressure"). At two writes for a new request, three with enlisted writes, a shard
	// is good for 333 requests a second at least: 64 for 21,000, which is above the
	// 20,000 that a table or an index takes by its default quota of 40,000 write units a
	// second ("Quotas in Amazon DynamoDB"). A look at the index asks each shard, for
	// half a read unit if there is nothing in it.
	//
	// To have more, tell who reads first, then who writes; to have fewer, who writes
	// first, and who reads once all that was locked before has ended.
	LeaseShards int

	// The names of the attributes that Powertools for AWS Lambda lets its users
	// rename too. All names in an item must differ.
	IDAttribute                   string // the partition key, a string; default "id"
	StatusAttribute               string // default "status"
	ExpirationAttribute           string // the table's TTL attribute; default "expiration"
	InProgressExpirationAttribute string // default "in_progress_expiration"
	DataAttribute                 string // default "data"
	ValidationAttribute           string // the request's fingerprint; default "validation"
}

// transportVariable is the environment variable that names a transport.
const transportVariable = "LAMBDAIDEM_TRANSPORT"

const (
	maxAttempts      = 20  // keeps a typing error from retrying for hours
	maxAttributeName = 255 // bytes, of a key; AWS, "Quotas in Amazon DynamoDB"

	maxLeaseShards = 1000 // keeps a typing error from asking for hours

	// A record with maxInlineBound bytes of an answer is no item over 400 KB.
	maxInlineBound = 384 << 10
	maxAnswerBound = 64 << 20
)

// isTableName is DynamoDB's rule for a name. It is a loop because a regular
// expression with such a count takes a cold start 3,300 allocations.
func isTableName(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '_', c == '.', c == '-':
		default:
			return false
		}
	}
	return 3 <= len(s) && len(s) <= 255
}

// resolved returns the options with every default in place. It panics on an
// invalid option, and names it.
func resolved(caller, table string, optFns []func(*Options)) Options {
	// An ARN may stand in a name's place; the SDK judges it.
	if !isTableName(table) && !strings.HasPrefix(table, "arn:") {
		panic(fmt.Sprintf("dynamostore: %s: table is %q; it must be a table's name (3 to 255 of A-Z a-z 0-9 _ . -) or its ARN", caller, table))
	}
	var o Options
	for _, fn := range optFns {
		fn(&o)
	}
	orDefault(&o.Attempts, 3)
	orDefault(&o.AttemptTimeout, 2*time.Second)
	orDefault(&o.BackoffBase, 25*time.Millisecond)
	orDefault(&o.BackoffMax, max(time.Second, o.BackoffBase))
	orDefault(&o.CompressFrom, 2<<10)
	orDefault(&o.MaxInline, 20<<10)
	orDefault(&o.MaxAnswer, 9<<20)
	orDefault(&o.LeaseShards, 64)
	orDefault(&o.Encryption.KeyFor, 5*time.Minute)
	for _, a := range itemAttributes {
		if a.option != nil {
			orDefault(a.option.name(&o), a.standard)
		}
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	orDefault(&o.Transport, Transport(os.Getenv(transportVariable)))
	if problem := o.problem(); problem != "" {
		panic(fmt.Sprintf("dynamostore: %s: Options.%s", caller, problem))
	}
	return o
}

func orDefault[T comparable](v *T, d T) {
	if *v == *new(T) {
		*v = d
	}
}

// problem says what is wrong with the options, beginning with a field's name.
func (o *Options) problem() string {
	switch {
	case o.Attempts < 1 || o.Attempts > maxAttempts:
		return fmt.Sprintf("Attempts is %d; it must be 1 to %d", o.Attempts, maxAttempts)
	case o.AttemptTimeout < time.Millisecond:
		return fmt.Sprintf("AttemptTimeout is %v; it must be at least 1ms", o.AttemptTimeout)
	case o.Transport != TransportAuto && o.Transport != TransportDirect && o.Transport != TransportSDK:
		return fmt.Sprintf("Transport is %q; it must be empty, %q or %q (unset, it is what the environment variable %s says)", o.Transport, TransportDirect, TransportSDK, transportVariable)
	case o.BackoffBase < 0:
		return fmt.Sprintf("BackoffBase is %v; it must not be negative", o.BackoffBase)
	case o.BackoffMax < o.BackoffBase:
		return fmt.Sprintf("BackoffMax is %v; it must be at least BackoffBase, %v", o.BackoffMax, o.BackoffBase)
	case o.CompressFrom < 1:
		return fmt.Sprintf("CompressFrom is %d bytes; it must be at least 1", o.CompressFrom)
	case o.MaxInline < 1 || o.MaxInline > maxInlineBound:
		return fmt.Sprintf("MaxInline is %d bytes; it must be 1 to %d", o.MaxInline, maxInlineBound)
	case o.MaxAnswer < 1 || o.MaxAnswer > maxAnswerBound:
		return fmt.Sprintf("MaxAnswer is %d bytes; it must be 1 to %d", o.MaxAnswer, maxAnswerBound)
	case o.LeaseIndex != "" && !isTableName(o.LeaseIndex):
		return fmt.Sprintf("LeaseIndex is %q; it must be an index's name (3 to 255 of A-Z a-z 0-9 _ . -)", o.LeaseIndex)
	case o.LeaseShards < 1 || o.LeaseShards > maxLeaseShards:
		return fmt.Sprintf("LeaseShards is %d; it must be 1 to %d", o.LeaseShards, maxLeaseShards)
	}
	if problem := o.Encryption.problem(); problem != "" {
		return "Encryption." + problem
	}
	return o.attributeProblem()
}

// attributeProblem finds an attribute name that is too long or taken.
func (o *Options) attributeProblem() string {
	taken := map[string]string{}
	for _, name := range keptNames {
		taken[name] = "an attribute of this package"
	}
	for _, a := range itemAttributes {
		if a.option == nil {
			taken[a.standard] = "an attribute of this package"
		}
	}
	for _, a := range itemAttributes {
		if a.option == nil {
			continue
		}
		name := *a.option.name(o)
		if len(name) > maxAttributeName {
			return fmt.Sprintf("%s has %d bytes; it may have %d", a.option.field, len(name), maxAttributeName)
		}
		if by, ok := taken[name]; ok {
			return fmt.Sprintf("%s is %q, which is already %s; choose another name", a.option.field, name, by)
		}
		taken[name] = "Options." + a.option.field
	}
	return ""
}
