package dynamostore

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"
)

// Options configure [New] and [CreateTable]. The zero value of each field selects its
// default.
type Options struct {
	// Attempts is the maximum number of times that one request is sent, including the
	// first: 1 to 20. Default 3.
	Attempts int

	// AttemptTimeout is the timeout of each try of a request, at least 1 ms. Default 2 s. If a
	// connection broke while the function was frozen, the try that uses it fails after
	// AttemptTimeout, and the next try opens a new connection. DynamoDB replies to a request for
	// one item in single-digit milliseconds. But the first TLS connection takes longer in a small
	// function, which has only a fraction of a processor.
	AttemptTimeout time.Duration

	// BackoffBase and BackoffMax limit the random wait after a failed try ("full jitter",
	// AWS Architecture Blog, "Exponential Backoff And Jitter"). After the first try, the
	// wait is at most BackoffBase. Each further try doubles this maximum, up to
	// BackoffMax. BackoffMax must be at least BackoffBase. Defaults 25 ms and 1 s.
	BackoffBase, BackoffMax time.Duration

	// Transport selects the code that sends requests to DynamoDB. By default, the environment
	// variable LAMBDAIDEM_TRANSPORT ("direct" or "sdk") selects it, so an operator can switch
	// without deploying code. If the variable is not set either, the default is [TransportAuto].
	Transport Transport

	// Random returns a number of at least 0 and below 1. The wait after a failed try is this
	// number times the maximum wait; see BackoffBase. Random must be safe for concurrent
	// use. Default: math/rand/v2.Float64.
	Random func() float64

	// CompressFrom is the minimum size in bytes of an answer that is compressed, at least 1. The
	// value math.MaxInt disables compression. Default 2 KB, because compressing smaller JSON rarely
	// saves a write unit.
	//
	// An answer is stored compressed only if that saves at least 1 KB, which is one write unit.
	// Answers that are not compressed can be read in the console.
	CompressFrom int

	// MaxInline is the maximum size in bytes of an answer that is stored in the record itself,
	// after compression and encryption: 1 byte to 384 KB. A larger answer is stored in separate
	// items. Default 20 KB.
	//
	// A replay begins with a write that DynamoDB refuses, which costs write units for the whole
	// record. Separate items make the record smaller and replays cheaper, but cost about one write
	// unit more to store. So the rarer replays are, the larger MaxInline should be. With on-demand
	// prices, the break-even size of an answer is 22 KB with one replay for every 20 first
	// requests, and 54 KB with one for every 50.
	MaxInline int

	// MaxAnswer is the maximum size in bytes of an answer before compression: 1 byte to
	// 64 MB. A larger answer is not stored. The record is completed without it, and
	// retries get lambdaidem.ErrAnswerUnavailable. Default 9 MB, which is enough for the
	// 6 MB that Lambda can return, as base64 and with headers.
	MaxAnswer int

	// Encryption encrypts the answers in records. Default: none.
	Encryption Encryption

	// LeaseIndex is the name of a global secondary index of the table. With the index,
	// [Store.DeadLeases] finds the leases of dead attempts by queries, instead of a scan of the
	// table. The name has 3 to 255 characters: letters A-Z and a-z, digits, underscores, hyphens
	// and periods. Default: no index.
	//
	// The index must have the string attribute lease_shard as its partition key, the number
	// attribute in_progress_expiration (Options.InProgressExpirationAttribute) as its sort key, and
	// the projection KEYS_ONLY. [CreateTable] creates the index and [Store.CheckTable] checks it.
	// For its cost, see docs/cost.md.
	//
	// The index can be added while functions are running, before or after the option is set. Set
	// the option in all functions that write to the table, and in the tool that operators use to
	// settle records. A function without the option does not maintain the index:
	//
	//   - A record whose lease it takes has no entry, so DeadLeases does not find the record.
	//   - If it completes or releases a record that has an entry, the entry remains until TTL
	//     deletes the record. Until then, every search pays a read unit for the entry.
	LeaseIndex string

	// LeaseShards is the number of shards of the index LeaseIndex: 1 to 1000. A shard is one value
	// of the index's partition key, and the id of a record determines its shard. Default 64.
	//
	// More shards allow more requests per second. One shard is enough for 500 new requests per
	// second, or for 333 with enlisted writes:
	//
	//   - A request uses two write units of its shard. With enlisted writes, it uses three (in
	//     DynamoDB Local; AWS does not document it).
	//   - All new entries of a shard go to the same partition, which can take 1,000 write units a
	//     second (Amazon DynamoDB, "Best practices for designing and using partition keys
	//     effectively").
	//   - All 64 shards together could take 64,000 write units a second, but the default quota of
	//     the index is 40,000 ("Quotas in Amazon DynamoDB").
	//   - If the index can't keep up, DynamoDB throttles all writes that take a lease
	//     ("Understanding Global Secondary Index write throttling and back pressure").
	//
	// Fewer shards make [Store.DeadLeases] cheaper. It queries each shard, and an empty shard costs
	// half a read unit.
	//
	// A search must always cover every shard that has entries. The Lambda functions add the
	// entries, and programs that call DeadLeases search them. To increase the number, change it
	// first in these programs, then in the functions. To decrease it, change it first in the
	// functions. Wait until no record that was acquired before this change is still in progress.
	// Then change the programs.
	LeaseShards int

	// SortKeyAttribute is the name of the table's sort key, a string attribute. Set it for a table
	// of several kinds of items ("single-table design") that has a sort key. All stores and tools
	// that use one table need the same value. Default: none; the table then has only a partition
	// key.
	//
	// Every item of this package has the same value in both key attributes: the id of a record or
	// of a part of an answer, which begins with "lambdaidem#". So the table has no hot partition,
	// and neither has an index whose partition key is the table's sort key.
	SortKeyAttribute string

	// Each of the six fields below names one attribute of a record. The names of all attributes of
	// an item must differ. The records of Powertools for AWS Lambda have the same six attributes
	// with the same default names, and Powertools can rename them too. So Powertools and this
	// package can use the same table.
	IDAttribute                   string // the partition key, a string; default "id"
	StatusAttribute               string // the state of the record; default "status"
	ExpirationAttribute           string // the table's TTL attribute; default "expiration"
	InProgressExpirationAttribute string // the end of the lease; default "in_progress_expiration"
	DataAttribute                 string // the answer; default "data"
	ValidationAttribute           string // the request's fingerprint; default "validation"
}

// transportVariable is the environment variable that selects the transport (see
// Options.Transport) if the option is not set.
const transportVariable = "LAMBDAIDEM_TRANSPORT"

const (
	maxAttempts      = 20  // prevents a typo from causing hours of retries
	maxAttributeName = 255 // bytes, for an attribute that is a key; AWS, "Quotas in Amazon DynamoDB"

	maxLeaseShards = 1000 // prevents a typo from causing hours of queries

	// maxInlineBound is the largest permitted Options.MaxInline. A record with an answer of this
	// size stays within DynamoDB's limit of 400 KB for an item.
	maxInlineBound = 384 << 10
	maxAnswerBound = 64 << 20
)

// isTableName reports whether DynamoDB accepts s as the name of a table or index. It
// does not use a regular expression, because compiling one with a large repeat count
// takes 3,300 allocations in a cold start.
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

// resolved returns the options with their defaults filled in. It panics if the table's name or an
// option is invalid. The text of the panic says what is invalid, and names the function that the
// user called. The parameter caller is the name of that function, such as "New".
func resolved(caller, table string, optFns []func(*Options)) Options {
	// Don't check an ARN here, because the SDK does.
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

// problem returns a description of the first invalid option, beginning with its name. It returns ""
// if all options are valid.
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

// attributeProblem returns a description of the first option whose attribute name is invalid,
// beginning with the option's name. It returns "" if all names are valid. An attribute name is
// invalid if it is too long, or if another attribute has the same name.
func (o *Options) attributeProblem() string {
	taken := map[string]string{}
	for _, name := range reservedNames {
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
		if name == "" { // the table has no sort key
			continue
		}
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
